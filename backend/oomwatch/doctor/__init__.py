"""The config doctor: what is wrong with a training's configuration, told before it is started."""
