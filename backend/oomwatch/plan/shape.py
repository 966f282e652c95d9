"""The shape of a language model, and how many parameters follow from it."""

from msgspec import Struct


class LatentAttention(Struct, frozen=True, kw_only=True):
    """DeepSeek's multi-head latent attention: what is cached for a token is one small vector for all heads."""

    query_rank: int  # 0: the query is projected at once
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int


class Experts(Struct, frozen=True, kw_only=True):
    """The feed-forward of a layer as many small ones, of which a token passes few."""

    count: int
    per_token: int
    ffn: int  # width of one
    shared: int = 0  # through which every token passes, each of the same width
    dense_layers: int = 0  # the first layers have an ordinary feed-forward


class ModelShape(Struct, frozen=True, kw_only=True):
    """A decoder as its config.json describes it. Widths are counts of numbers, never bytes."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool  # the output head is the embedding
    qkv_bias: bool = False
    qk_norm: bool = False
    norms_per_layer: int = 2
    experts: Experts | None = None
    latent: LatentAttention | None = None
    other_parameters: int = 0  # of a tower that sees; they belong to no layer here
    source: str = ""  # where the shape was read
    verified: bool = False  # whether that was the published config.json or a copy that is held against another

    @property
    def embedding_parameters(self) -> int:
        return self.vocab * self.hidden

    @property
    def head_parameters(self) -> int:
        """Of the output head, where it is a matrix of its own."""
        return 0 if self.tied else self.embedding_parameters

    @property
    def attention_parameters(self) -> int:
        """Of one layer."""
        if self.latent is not None:
            return _latent_parameters(self, self.latent)
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        biases = queries + 2 * keys if self.qkv_bias else 0
        norms = 2 * self.head_dim if self.qk_norm else 0
        return self.hidden * (2 * queries + 2 * keys) + biases + norms

    @property
    def sparse_layers(self) -> int:
        """Layers whose feed-forward are experts."""
        return self.layers - self.experts.dense_layers if self.experts else 0

    @property
    def expert_parameters(self) -> int:
        """Of all routed experts of all layers: what expert parallelism divides."""
        return self.sparse_layers * self.experts.count * 3 * self.hidden * self.experts.ffn if self.experts else 0

    @property
    def parameters(self) -> int:
        """All of them, embeddings included."""
        return self.expert_parameters + self.dense_parameters

    @property
    def dense_parameters(self) -> int:
        """All but the routed experts."""
        shared = self.sparse_layers * _beside_experts(self)
        dense = (self.layers - self.sparse_layers) * 3 * self.hidden * self.ffn
        norms = (self.layers * self.norms_per_layer + 1) * self.hidden
        attention = self.layers * self.attention_parameters
        outer = self.embedding_parameters + self.head_parameters + self.other_parameters
        return outer + attention + shared + dense + norms

    @property
    def layer_parameters(self) -> float:
        """Of one layer, as the mean of all: what a sharded trainer gathers at a time."""
        outer = self.embedding_parameters + self.head_parameters + self.other_parameters + self.hidden
        return (self.parameters - outer) / self.layers

    @property
    def active_ffn(self) -> int:
        """How wide the feed-forward is that one token passes: of an ordinary layer, or of its experts together."""
        return self.ffn if self.experts is None else self.experts.ffn * (self.experts.per_token + self.experts.shared)

    def kv_numbers_per_token(self, tensor: int = 1) -> int:
        """Numbers that the KV cache keeps for a token on one GPU of a tensor-parallel group."""
        if self.latent is not None:
            return self.layers * (self.latent.kv_rank + self.latent.rope_dim)  # the same on every GPU of the group
        return 2 * self.layers * max(1, self.kv_heads // tensor) * self.head_dim


def _beside_experts(shape: ModelShape) -> int:
    """Parameters of a sparse layer's feed-forward that every token passes: the router and the shared experts."""
    if shape.experts is None:
        return 0
    return shape.hidden * shape.experts.count + shape.experts.shared * 3 * shape.hidden * shape.experts.ffn


def _latent_parameters(shape: ModelShape, latent: LatentAttention) -> int:
    """Of one layer's attention (DeepSeek-V3 technical report, section 2.1.1; its published inference code)."""
    queries = shape.heads * (latent.nope_dim + latent.rope_dim)
    down = latent.query_rank
    query = shape.hidden * down + down + down * queries if down else shape.hidden * queries
    keys = shape.hidden * (latent.kv_rank + latent.rope_dim) + latent.kv_rank
    values = latent.kv_rank * shape.heads * (latent.nope_dim + latent.value_dim)
    return query + keys + values + shape.heads * latent.value_dim * shape.hidden
