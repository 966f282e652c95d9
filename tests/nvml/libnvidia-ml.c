/* A stand-in for NVIDIA's management library, for machines without a GPU.
 *
 * Its devices are what a script says (the file named by OOMWATCH_NVML_SCRIPT), read again whenever the file changes, so
 * that a test can fill a card, lose it or hang it while a real program watches. standin.py writes the script and
 * documents every word of it. Signatures and structs are those of NVIDIA's public nvml.h.
 *
 * Where the script says so, the name of every call is appended to SCRIPT.calls, with the device's index.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_GPUS 64
#define MAX_MIGS 8
#define MAX_LIST 32
#define TEXT 96
#define HANG_CHECK_MICROSECONDS 2000
#ifndef RELEASE
#define RELEASE "" /* of the driver that this library belongs to; the script says which kernel module is loaded */
#endif

enum {
  SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
  TIMED_OUT = 10, GPU_IS_LOST = 15, LIB_RM_VERSION_MISMATCH = 18, UNKNOWN = 999
};
enum { WHOLE_LIBRARY = -1, XID_EVENT = 8 };

typedef unsigned long long u64;
typedef struct { int gpu, mig; } handle_t; /* mig is -1 for a whole GPU */
typedef struct { char function[TEXT]; int code; } refusal_t;
typedef struct { unsigned pid; u64 used; } process_t;
typedef struct { u64 serial, xid; } xid_t;

typedef struct {
  char uuid[TEXT], name[TEXT], pci[TEXT];
  u64 total, reserved, used, ecc;
  unsigned utilization, power_mw, power_limit_mw;
  int temperature, lost, hang, note_calls, burn_us, process_count, refusal_count, xid_count;
  int gpu_count, mig_count; /* filled in where a copy is made */
  /* From here on a copy has what it needs alone: to copy 4 KB at every call cost more than all else in it. */
  process_t processes[MAX_LIST];
  refusal_t refusals[MAX_LIST];
  xid_t xids[MAX_LIST];
} unit_t;

typedef struct { unit_t self; int mig_count; unit_t migs[MAX_MIGS]; } gpu_t;
typedef struct { int gpu_count; char module[TEXT]; unit_t library; gpu_t gpus[MAX_GPUS]; } script_t;
typedef struct { u64 registered[MAX_GPUS]; u64 seen[MAX_GPUS]; } event_set_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static script_t script;
static struct stat read_as;
static char read_path[4096];
static int initialised;
static handle_t handles[MAX_GPUS][MAX_MIGS + 1];

/* ------------------------------------------------------------------ the script */

static void read_unit_line(unit_t *unit, const char *key, const char *value) {
  if (!strcmp(key, "uuid")) snprintf(unit->uuid, TEXT, "%s", value);
  else if (!strcmp(key, "name")) snprintf(unit->name, TEXT, "%s", value);
  else if (!strcmp(key, "pci")) snprintf(unit->pci, TEXT, "%s", value);
  else if (!strcmp(key, "total")) unit->total = strtoull(value, NULL, 10);
  else if (!strcmp(key, "reserved")) unit->reserved = strtoull(value, NULL, 10);
  else if (!strcmp(key, "used")) unit->used = strtoull(value, NULL, 10);
  else if (!strcmp(key, "ecc")) unit->ecc = strtoull(value, NULL, 10);
  else if (!strcmp(key, "utilization")) unit->utilization = strtoul(value, NULL, 10);
  else if (!strcmp(key, "power")) unit->power_mw = strtoul(value, NULL, 10);
  else if (!strcmp(key, "power_limit")) unit->power_limit_mw = strtoul(value, NULL, 10);
  else if (!strcmp(key, "temperature")) unit->temperature = atoi(value);
  else if (!strcmp(key, "lost")) unit->lost = atoi(value);
  else if (!strcmp(key, "hang")) unit->hang = atoi(value);
  else if (!strcmp(key, "burn_us")) unit->burn_us = atoi(value);
  else if (!strcmp(key, "note_calls")) unit->note_calls = atoi(value);
  else if (!strcmp(key, "process") && unit->process_count < MAX_LIST) {
    process_t *process = &unit->processes[unit->process_count++];
    sscanf(value, "%u %llu", &process->pid, &process->used);
  } else if (!strcmp(key, "refuse") && unit->refusal_count < MAX_LIST) {
    refusal_t *refusal = &unit->refusals[unit->refusal_count++];
    sscanf(value, "%95s %d", refusal->function, &refusal->code);
  } else if (!strcmp(key, "xid") && unit->xid_count < MAX_LIST) {
    xid_t *xid = &unit->xids[unit->xid_count++];
    sscanf(value, "%llu %llu", &xid->serial, &xid->xid);
  }
}

static void read_script(FILE *file) {
  char line[512], key[64], value[400];
  unit_t *unit;
  memset(&script, 0, sizeof script);
  unit = &script.library;
  while (fgets(line, sizeof line, file)) {
    value[0] = 0;
    if (sscanf(line, "%63s %399[^\n]", key, value) < 1) continue;
    if (!strcmp(key, "gpu") && script.gpu_count < MAX_GPUS) unit = &script.gpus[script.gpu_count++].self;
    else if (!strcmp(key, "module")) snprintf(script.module, TEXT, "%s", value);
    else if (!strcmp(key, "mig") && script.gpu_count) {
      gpu_t *gpu = &script.gpus[script.gpu_count - 1];
      if (gpu->mig_count < MAX_MIGS) unit = &gpu->migs[gpu->mig_count++];
    } else read_unit_line(unit, key, value);
  }
}

/* With the lock held. The writer renames a whole new file into place, so a new inode or time is a new script. */
static void refresh(void) {
  const char *path = getenv("OOMWATCH_NVML_SCRIPT");
  struct stat now;
  FILE *file;
  if (!path || stat(path, &now)) return;
  if (now.st_ino == read_as.st_ino && now.st_mtim.tv_sec == read_as.st_mtim.tv_sec &&
      now.st_mtim.tv_nsec == read_as.st_mtim.tv_nsec && !strcmp(path, read_path)) return;
  file = fopen(path, "r");
  if (!file) return;
  read_as = now;
  snprintf(read_path, sizeof read_path, "%s", path);
  read_script(file);
  fclose(file);
}

static void note_call(const char *function, int gpu) {
  char path[4200], line[200];
  int file, size;
  if (!script.library.note_calls) return;
  snprintf(path, sizeof path, "%s.calls", read_path);
  file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0644);
  if (file < 0) return;
  size = snprintf(line, sizeof line, "%s %d\n", function, gpu);
  if (write(file, line, size) != size) abort();
  close(file);
}

/* ------------------------------------------------------------------ how every call begins */

static unit_t *unit_of(handle_t *handle) {
  if (!handle) return &script.library;
  if (handle->gpu >= script.gpu_count) return NULL;
  if (handle->mig < 0) return &script.gpus[handle->gpu].self;
  return handle->mig < script.gpus[handle->gpu].mig_count ? &script.gpus[handle->gpu].migs[handle->mig] : NULL;
}

static int hung(handle_t *handle, unit_t *unit) {
  return unit->hang || (handle && script.gpus[handle->gpu].self.hang);
}

static int verdict(handle_t *handle, unit_t *unit, const char *function) {
  int i;
  for (i = 0; i < unit->refusal_count; i++)
    if (!strcmp(unit->refusals[i].function, function)) return unit->refusals[i].code;
  if (handle && (unit->lost || script.gpus[handle->gpu].self.lost)) return GPU_IS_LOST;
  return SUCCESS;
}

/* A driver that takes CPU: so many microseconds of it a call. */
static void burn(int microseconds) {
  struct timespec began, now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  while ((now.tv_sec - began.tv_sec) * 1000000 + (now.tv_nsec - began.tv_nsec) / 1000 < microseconds);
}

/* Waits while the device hangs; then a copy of the device, and the code that the script wants this call to give. */
static int enter(handle_t *handle, const char *function, unit_t *copy) {
  unit_t *unit;
  int code, burn_us;
  pthread_mutex_lock(&lock);
  refresh();
  note_call(function, handle ? handle->gpu : WHOLE_LIBRARY);
  while ((unit = unit_of(handle)) && hung(handle, unit)) {
    pthread_mutex_unlock(&lock);
    usleep(HANG_CHECK_MICROSECONDS);
    pthread_mutex_lock(&lock);
    refresh();
  }
  if (!unit) code = handle->mig < 0 ? GPU_IS_LOST : INVALID_ARGUMENT;
  else code = verdict(handle, unit, function);
  if (script.module[0] && RELEASE[0] && strcmp(script.module, RELEASE) && strcmp(function, "nvmlShutdown"))
    code = LIB_RM_VERSION_MISMATCH;
  if (code == SUCCESS && !initialised && strcmp(function, "nvmlInitWithFlags")) code = UNINITIALIZED;
  if (code == SUCCESS) {
    memcpy(copy, unit, offsetof(unit_t, processes));
    memcpy(copy->processes, unit->processes, unit->process_count * sizeof *unit->processes);
    memcpy(copy->xids, unit->xids, unit->xid_count * sizeof *unit->xids);
    copy->gpu_count = script.gpu_count;
    copy->mig_count = handle ? script.gpus[handle->gpu].mig_count : 0;
  }
  burn_us = script.library.burn_us;
  pthread_mutex_unlock(&lock);
  if (burn_us) burn(burn_us);
  return code;
}

#define ENTER(handle) unit_t unit; int code = enter(handle, __func__, &unit); if (code) return code

static int put_text(char *to, unsigned size, const char *text) {
  if (strlen(text) + 1 > size) return INSUFFICIENT_SIZE;
  strcpy(to, text);
  return SUCCESS;
}

/* ------------------------------------------------------------------ the library */

EXPORT int nvmlInitWithFlags(unsigned flags) {
  int gpu, mig;
  (void)flags;
  ENTER(NULL);
  for (gpu = 0; gpu < MAX_GPUS; gpu++)
    for (mig = -1; mig < MAX_MIGS; mig++) handles[gpu][mig + 1] = (handle_t){gpu, mig};
  __sync_fetch_and_add(&initialised, 1);
  return SUCCESS;
}
EXPORT int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

EXPORT int nvmlShutdown(void) {
  ENTER(NULL);
  __sync_fetch_and_sub(&initialised, 1);
  return SUCCESS;
}

EXPORT const char *nvmlErrorString(int code) { return code ? "error of the NVML stand-in" : "Success"; }

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned size) { ENTER(NULL); return put_text(version, size, unit.name); }
EXPORT int nvmlSystemGetNVMLVersion(char *version, unsigned size) { ENTER(NULL); return put_text(version, size, "13.0"); }
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version) { ENTER(NULL); *version = 13000; return SUCCESS; }

EXPORT int nvmlDeviceGetCount_v2(unsigned *count) { ENTER(NULL); *count = unit.gpu_count; return SUCCESS; }

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle_t **handle) {
  if (index >= MAX_GPUS) return INVALID_ARGUMENT;
  ENTER(&handles[index][0]);
  *handle = &handles[index][0];
  return SUCCESS;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, handle_t **handle) {
  int gpu;
  ENTER(NULL);
  for (gpu = 0; gpu < unit.gpu_count; gpu++)
    if (!strcmp(script.gpus[gpu].self.uuid, uuid)) { *handle = &handles[gpu][0]; return SUCCESS; }
  return NOT_FOUND;
}

/* ------------------------------------------------------------------ one device */

typedef struct { u64 total, free, used; } memory_v1_t;
typedef struct { unsigned version; u64 total, reserved, free, used; } memory_v2_t;
typedef struct { unsigned gpu, memory; } utilization_t;
typedef struct { unsigned version; int sensor; int temperature; } temperature_v1_t;
typedef struct { unsigned pid; u64 used; unsigned gpu_instance, compute_instance; } process_info_t;
typedef struct {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
} pci_info_t;

EXPORT int nvmlDeviceGetIndex(handle_t *handle, unsigned *index) { ENTER(handle); *index = handle->gpu; return SUCCESS; }
EXPORT int nvmlDeviceGetUUID(handle_t *handle, char *text, unsigned size) { ENTER(handle); return put_text(text, size, unit.uuid); }
EXPORT int nvmlDeviceGetName(handle_t *handle, char *text, unsigned size) { ENTER(handle); return put_text(text, size, unit.name); }

EXPORT int nvmlDeviceGetPciInfo_v3(handle_t *handle, pci_info_t *pci) {
  ENTER(handle);
  memset(pci, 0, sizeof *pci);
  sscanf(unit.pci, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
  snprintf(pci->legacy, sizeof pci->legacy, "%04x:%02x:%02x.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
  return put_text(pci->bus_id, sizeof pci->bus_id, unit.pci);
}

/* Version 1 counts what the driver reserves as used; version 2 tells the two apart. */
EXPORT int nvmlDeviceGetMemoryInfo(handle_t *handle, memory_v1_t *memory) {
  ENTER(handle);
  memory->total = unit.total;
  memory->used = unit.used + unit.reserved;
  memory->free = unit.total - memory->used;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(handle_t *handle, memory_v2_t *memory) {
  ENTER(handle);
  memory->total = unit.total;
  memory->reserved = unit.reserved;
  memory->used = unit.used;
  memory->free = unit.total - unit.used - unit.reserved;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetUtilizationRates(handle_t *handle, utilization_t *rates) {
  ENTER(handle);
  if (handle->mig >= 0) return NOT_SUPPORTED;
  *rates = (utilization_t){unit.utilization, 0};
  return SUCCESS;
}

EXPORT int nvmlDeviceGetPowerUsage(handle_t *handle, unsigned *milliwatts) {
  ENTER(handle);
  if (handle->mig >= 0) return NOT_SUPPORTED;
  *milliwatts = unit.power_mw;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(handle_t *handle, unsigned *milliwatts) {
  ENTER(handle);
  if (handle->mig >= 0) return NOT_SUPPORTED;
  *milliwatts = unit.power_limit_mw;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetTemperature(handle_t *handle, int sensor, unsigned *celsius) {
  ENTER(handle);
  if (handle->mig >= 0 || sensor) return NOT_SUPPORTED;
  *celsius = unit.temperature;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetTemperatureV(handle_t *handle, temperature_v1_t *reading) {
  ENTER(handle);
  if (handle->mig >= 0 || reading->sensor) return NOT_SUPPORTED;
  reading->temperature = unit.temperature;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetTotalEccErrors(handle_t *handle, int error_type, int counter, u64 *count) {
  ENTER(handle);
  (void)counter;
  *count = error_type == 1 ? unit.ecc : 0;
  return SUCCESS;
}

static int put_processes(const unit_t *unit, unsigned *count, process_info_t *list) {
  int i, fits = list && *count >= (unsigned)unit->process_count;
  *count = unit->process_count;
  if (!unit->process_count) return SUCCESS;
  if (!fits) return INSUFFICIENT_SIZE;
  for (i = 0; i < unit->process_count; i++)
    list[i] = (process_info_t){unit->processes[i].pid, unit->processes[i].used, ~0u, ~0u};
  return SUCCESS;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(handle_t *handle, unsigned *count, process_info_t *list) {
  ENTER(handle);
  return put_processes(&unit, count, list);
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(handle_t *handle, unsigned *count, process_info_t *list) {
  ENTER(handle);
  return put_processes(&unit, count, list);
}

EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(handle_t *handle, unsigned *count, process_info_t *list) {
  (void)list;
  ENTER(handle);
  *count = 0;
  return SUCCESS;
}

/* ------------------------------------------------------------------ MIG */

EXPORT int nvmlDeviceGetMigMode(handle_t *handle, unsigned *current, unsigned *pending) {
  ENTER(handle);
  *current = *pending = unit.mig_count > 0;
  return SUCCESS;
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(handle_t *handle, unsigned *count) { ENTER(handle); *count = MAX_MIGS - 1; return SUCCESS; }

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(handle_t *handle, unsigned index, handle_t **mig) {
  ENTER(handle);
  if ((int)index >= unit.mig_count) return NOT_FOUND;
  *mig = &handles[handle->gpu][index + 1];
  return SUCCESS;
}

EXPORT int nvmlDeviceIsMigDeviceHandle(handle_t *handle, unsigned *answer) { ENTER(handle); *answer = handle->mig >= 0; return SUCCESS; }

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle_t *mig, handle_t **handle) {
  ENTER(mig);
  *handle = &handles[mig->gpu][0];
  return SUCCESS;
}

/* ------------------------------------------------------------------ events: only Xids that come after registration */

typedef struct { handle_t *device; u64 type, data; unsigned gpu_instance, compute_instance; } event_data_t;

EXPORT int nvmlEventSetCreate(event_set_t **set) {
  ENTER(NULL);
  *set = calloc(1, sizeof **set);
  return *set ? SUCCESS : UNKNOWN;
}

EXPORT int nvmlEventSetFree(event_set_t *set) { ENTER(NULL); free(set); return SUCCESS; }

EXPORT int nvmlDeviceGetSupportedEventTypes(handle_t *handle, u64 *types) { ENTER(handle); *types = XID_EVENT; return SUCCESS; }

EXPORT int nvmlDeviceRegisterEvents(handle_t *handle, u64 types, event_set_t *set) {
  ENTER(handle);
  set->registered[handle->gpu] = types;
  if (unit.xid_count) set->seen[handle->gpu] = unit.xids[unit.xid_count - 1].serial;
  return SUCCESS;
}

static int next_xid(event_set_t *set, event_data_t *event) {
  int gpu, i;
  for (gpu = 0; gpu < script.gpu_count; gpu++) {
    unit_t *unit = &script.gpus[gpu].self;
    for (i = 0; i < unit->xid_count && set->registered[gpu] & XID_EVENT; i++) {
      if (unit->xids[i].serial <= set->seen[gpu]) continue;
      set->seen[gpu] = unit->xids[i].serial;
      *event = (event_data_t){&handles[gpu][0], XID_EVENT, unit->xids[i].xid, ~0u, ~0u};
      return SUCCESS;
    }
  }
  return TIMED_OUT;
}

EXPORT int nvmlEventSetWait_v2(event_set_t *set, event_data_t *event, unsigned timeout_ms) {
  unsigned waited_ms = 0;
  for (;;) {
    int outcome;
    ENTER(NULL);
    pthread_mutex_lock(&lock);
    outcome = next_xid(set, event);
    pthread_mutex_unlock(&lock);
    if (outcome == SUCCESS || waited_ms >= timeout_ms) return outcome;
    usleep(1000);
    waited_ms++;
  }
}
