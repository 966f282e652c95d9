"""What several trainers call the figures of response lengths, by verl's names."""

LENGTHS = {
    "response_length": "response_length/mean",
    "completion_length": "response_length/mean",
    "mean_completion_length": "response_length/mean",
    "completions/mean_length": "response_length/mean",
    "max_completion_length": "response_length/max",
    "completions/max_length": "response_length/max",
    "clipped_completions_ratio": "response_length/clip_ratio",
    "completions/clipped_ratio": "response_length/clip_ratio",
}
