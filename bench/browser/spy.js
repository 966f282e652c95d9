// Runs in the page before its own scripts: notes how long the page works for each frame and each redraw.
(() => {
  const spy = { received: 0, update: 0, updates: [], plots: [] };
  window.spy = spy;
  const timed = (act) => {
    const begin = performance.now();
    const result = act();
    return [result, performance.now() - begin];
  };
  // An update is the frame and every drawing until the next frame.
  const message = Object.getOwnPropertyDescriptor(WebSocket.prototype, "onmessage");
  Object.defineProperty(WebSocket.prototype, "onmessage", {
    ...message,
    set(handler) {
      const spied = (event) => {
        if (spy.received > 0) spy.updates.push(spy.update);
        spy.received += 1;
        spy.update = timed(() => handler.call(this, event))[1];
      };
      message.set.call(this, handler === null ? null : spied);
    },
  });
  const frame = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (draw) =>
    frame((at) => {
      spy.update += timed(() => draw(at))[1];
    });
  // Charts: plotly draws within react(), and what is left within the promise that it gives.
  let plotly;
  Object.defineProperty(window, "Plotly", {
    get: () => plotly,
    set(value) {
      plotly = value;
      const react = value.react;
      value.react = (...given) => {
        const [promise, ms] = timed(() => react.apply(value, given));
        spy.plots.push({ at: performance.now(), ms });
        return promise;
      };
    },
  });
})();
