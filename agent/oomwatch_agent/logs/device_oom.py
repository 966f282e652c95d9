"""A GPU out of memory, in all the words that there are for it.

Every pattern is anchored at the start of the record: an exception's class (or the message itself, as a logger prints
it) must stand there. Text that quotes or explains an error has something before it and gives nothing. `error` is the
class where the record names one, else the family of the message; both are from this file, never free text.
"""

import re

from oomwatch import wire
from oomwatch_agent.logs.pattern import Bodies, Pattern
from oomwatch_agent.logs.units import NUMBER, SIZE_UNIT, byte_count, count_of

# torch.OutOfMemoryError: ..., RuntimeError: ..., ray.exceptions.RayTaskError(OutOfMemoryError): ...
_CLASS = (
    r"(?:ray\.exceptions\.RayTaskError\()?"
    r"(?P<error>(?:torch\.(?:cuda\.|distributed\.)?)?(?:OutOfMemoryError|RuntimeError|AcceleratorError|DistBackendError))"
    r"\)?: "
)
_GROUP = r"(?: {0,8}\| )?"  # an exception group draws a bar before its members
_START = rf"{_GROUP}(?:{_CLASS})?"

_TORCH = re.compile(
    rf"{_START}(?P<family>CUDA|HIP|XPU|NPU|MUSA|MLU) out of memory\. (?:\w{{1,40}} )?[Tt]ried to allocate "
    rf"(?P<tried>{NUMBER}) ?(?P<tried_unit>{SIZE_UNIT})(?P<rest>.{{0,4000}})"
)
_BARE = re.compile(
    rf"{_START}(?P<family>(?:CUDA|HIP) (?:driver )?error: out of memory|Triton Error \[CUDA\]: out of memory"
    r"|CUDA error: CUBLAS_STATUS_ALLOC_FAILED)"
)
# Without figures only where a class says that it is an error (vLLM: "... occurred when warming up sampler with ...").
_CLASSED = re.compile(rf"{_GROUP}{_CLASS}(?P<family>CUDA|HIP|XPU|NPU|MUSA|MLU) out of memory\b")
# vLLM's wake-up allocates below torch: cumem_allocator.cpp prints it and raises RuntimeError with the same words.
# Intel's XPU where the driver and not torch runs out: 39 and 40 are its device and its host memory.
_LEVEL_ZERO = re.compile(
    rf"{_START}(?:level_zero|UR) backend failed(?: with error|\. UR backend returns): ?\d{{1,4}} "
    r"\(UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY\)"
)
_CUMEM = re.compile(rf"{_START}CUDA Error: out of memory at \S{{0,200}}cumem_allocator\.cpp:\d+")
# SGLang's torch_memory_saver; 2 is CUDA_ERROR_OUT_OF_MEMORY.
_SAVER = re.compile(
    rf"(?:\[torch_memory_saver[^\]]*\] ?)?{_START}(?:CUresult|cudaError) error(?::| {{0,2}}result=)? ?2\b"
)
_NCCL = re.compile(r"(?:\S+:\d+:\d+ \[\d+\] .{0,160}?NCCL WARN )?(?:\[\w+\] )?Cuda failure (?:\d+ )?'out of memory'")
# torch asks NVML for the free memory when it words an OOM; on a MIG device that fails, and this is all one sees.
_NVML = re.compile(rf"{_START}NVML_SUCCESS == r INTERNAL ASSERT FAILED at \S*CUDACachingAllocator\.cpp")

_SIZE = rf"(?<![\d.])(?P<size>{NUMBER}) ?(?P<unit>{SIZE_UNIT})"
_CLAUSES = {
    "local_index": re.compile(r"\b(?:GPU|NPU|XPU|MLU) (?P<index>\d{1,6})\b"),
    "total_bytes": re.compile(
        rf"total capaci?ty of {_SIZE}|; {_SIZE.replace('size', 'size2').replace('unit', 'unit2')} total capacity"
    ),
    "free_bytes": re.compile(rf"{_SIZE} (?:is )?free"),
    "process_used_bytes": re.compile(rf"this process has {_SIZE} memory in use"),
    "allocated_bytes": re.compile(rf"{_SIZE} (?:is allocated by PyTorch|already allocated)"),
    "unallocated": re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated"),
    "reserved": re.compile(rf"{_SIZE} reserved in total by PyTorch"),
}


def _clause(name: str, text: str) -> int | None:
    match = _CLAUSES[name].search(text)
    if match is None:
        return None
    fields = match.groupdict()
    number, unit = (fields["size"], fields["unit"]) if fields["size"] else (fields["size2"], fields["unit2"])
    return byte_count(number, unit)


def _read_torch(match: re.Match[str]) -> Bodies:
    rest = match["rest"]
    index = _CLAUSES["local_index"].search(rest)
    allocated, unallocated = _clause("allocated_bytes", rest), _clause("unallocated", rest)
    reserved = _clause("reserved", rest)
    if unallocated is None and reserved is not None and allocated is not None:
        unallocated = max(0, reserved - allocated)  # the old form gives the sum
    return (
        wire.DeviceOom(
            error=_error(match, f"{match['family']} out of memory"),
            tried_bytes=byte_count(match["tried"], match["tried_unit"]),
            total_bytes=_clause("total_bytes", rest),
            free_bytes=_clause("free_bytes", rest),
            process_used_bytes=_clause("process_used_bytes", rest),
            allocated_bytes=allocated,
            reserved_unallocated_bytes=unallocated,
            local_index=count_of(index["index"]) if index else None,
        ),
    )


def _error(match: re.Match[str], family: str) -> str:
    return match["error"] or family


def _read_bare(match: re.Match[str]) -> Bodies:
    return (wire.DeviceOom(error=_error(match, match["family"])),)


def _read_cumem(_: re.Match[str]) -> Bodies:
    # Always by its family: that it is a wake-up says more than "RuntimeError" does.
    return (wire.DeviceOom(error="cumem_allocator"),)


def _read_level_zero(_: re.Match[str]) -> Bodies:
    return (wire.DeviceOom(error="Level Zero"),)


def _read_saver(_: re.Match[str]) -> Bodies:
    return (wire.DeviceOom(error="torch_memory_saver"),)


def _read_nccl(_: re.Match[str]) -> Bodies:
    return (wire.DeviceOom(error="NCCL"),)


def _read_nvml(_: re.Match[str]) -> Bodies:
    return (wire.DeviceOom(error="NVML assert"),)


PATTERNS = (
    Pattern(
        name="torch",
        gate="out of memory",
        regex=_TORCH,
        read=_read_torch,
        example=(
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of "
            "79.15 GiB of which 412.75 MiB is free. Including non-PyTorch memory, this process has 78.74 GiB memory in "
            "use. Of the allocated memory 71.02 GiB is allocated by PyTorch, and 5.11 GiB is reserved by PyTorch but "
            "unallocated."
        ),
        expect=("DeviceOom",),
    ),
    Pattern(
        name="vLLM wake-up out of memory",
        gate="cumem_allocator.cpp",
        regex=_CUMEM,
        read=_read_cumem,
        example="RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62",
        expect=("DeviceOom",),
    ),
    Pattern(
        name="CUDA error",
        gate="out of memory",
        regex=_BARE,
        read=_read_bare,
        example="torch.AcceleratorError: CUDA error: out of memory",
        expect=("DeviceOom",),
    ),
    Pattern(
        name="torch, without figures",
        gate="out of memory",
        regex=_CLASSED,
        read=_read_bare,
        example="RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests.",
        expect=("DeviceOom",),
    ),
    Pattern(
        name="cuBLAS",
        gate="CUBLAS_STATUS_ALLOC_FAILED",
        regex=_BARE,
        read=_read_bare,
        example="RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        expect=("DeviceOom",),
    ),
    Pattern(
        name="torch_memory_saver",
        gate="CUresult",
        regex=_SAVER,
        read=_read_saver,
        example="[torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=csrc/utils.h func=cu_mem_create",
        expect=("DeviceOom",),
    ),
    Pattern(
        name="torch_memory_saver, resume",
        gate="cudaError",
        regex=_SAVER,
        read=_read_saver,
        example="[torch_memory_saver.cpp] cudaError error: 2 (out of memory)  file=csrc/core.cpp func=resume line=172",
        expect=("DeviceOom",),
    ),
    Pattern(
        name="NCCL",
        gate="Cuda failure",
        regex=_NCCL,
        read=_read_nccl,
        example="node1:4127:5310 [0] include/alloc.h:228 NCCL WARN Cuda failure 2 'out of memory'",
        expect=("DeviceOom",),
    ),
    Pattern(
        name="NVML assert",
        gate="NVML_SUCCESS",
        regex=_NVML,
        read=_read_nvml,
        example='RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":838',
        expect=("DeviceOom",),
    ),
    Pattern(
        name="NPU",
        gate="NPU out of memory",
        regex=_TORCH,
        read=_read_torch,
        example=(
            "RuntimeError: NPU out of memory. Tried to allocate 5.03 GiB (NPU 3; 60.96 GiB total capacity; 49.47 GiB "
            "already allocated; 49.47 GiB current active; 1.32 GiB free; 57.55 GiB reserved in total by PyTorch) If "
            "reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."
        ),
        expect=("DeviceOom",),
        seen_in="xingchensong/TouchNet issue 100",
    ),
    Pattern(
        name="XPU",
        gate="XPU out of memory",
        regex=_TORCH,
        read=_read_torch,
        example=(
            "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.66 GiB. GPU 0 has a total capacity of "
            "5.65 GiB of which 5.65 GiB is free. Of the allocated memory 195.50 KiB is allocated by PyTorch, and "
            "1.81 MiB is reserved by PyTorch but unallocated. Please "
            "use `empty_cache` to release all unoccupied cached memory."
        ),
        expect=("DeviceOom",),
        seen_in="intel/torch-xpu-ops issue 3011",
    ),
    Pattern(
        name="PyTorch before 2.1",
        gate="total capacity",
        regex=_TORCH,
        read=_read_torch,
        example=(
            "RuntimeError: CUDA out of memory. Tried to allocate 2.87 GiB (GPU 0; 14.76 GiB total capacity; 8.77 GiB "
            "already allocated; 19.75 MiB free; 13.71 GiB reserved in total by PyTorch)"
        ),
        expect=("DeviceOom",),
        seen_in="rshaojimmy/MADDoG issue 11",
    ),
    Pattern(
        name="PyTorch 2.1, misspelt",
        gate="total capacty",
        regex=_TORCH,
        read=_read_torch,
        example=(
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.70 GiB. GPU 0 has a total capacty of "
            "6.00 GiB of which 0 bytes is free. Of the allocated memory 2.93 GiB is allocated by PyTorch, and 2.30 GiB "
            "is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
            "max_split_size_mb to avoid fragmentation."
        ),
        expect=("DeviceOom",),
        seen_in="carolchenyx/MGFN issue 35",
    ),
    Pattern(
        name="HIP",
        gate="HIP out of memory",
        regex=_TORCH,
        read=_read_torch,
        example=(
            "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.32 GiB. GPU 0 has a total capacity of "
            "191.98 GiB of which 1.02 GiB is free. Of the allocated memory 180.02 GiB is allocated by PyTorch, and "
            "5.11 GiB is reserved by PyTorch but unallocated."
        ),
        expect=("DeviceOom",),
    ),
    Pattern(
        name="Level Zero",
        gate="OUT_OF_DEVICE_MEMORY",
        regex=_LEVEL_ZERO,
        read=_read_level_zero,
        example="RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)",
        expect=("DeviceOom",),
    ),
)
