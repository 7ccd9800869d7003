import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** The clock tick of Linux is 10 ms on all platforms of Node. */
const MS_PER_TICK = 10

/** Returns the user and system time of a process, in ms; 0 where the system does not report it. */
export const cpuMsOf = (pid: number) => cpuMs(pid, 'utime')

/** Returns that of the children of this process that have exited. */
export const cpuMsOfExited = () => cpuMs('self', 'cutime')

/** Reads the field and the next one, which is the system time (proc_pid_stat(5)). */
function cpuMs(pid: number | 'self', field: 'utime' | 'cutime'): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    const at = field === 'utime' ? 11 : 13
    return (Number(fields[at]) + Number(fields[at + 1])) * MS_PER_TICK
  } catch {
    return 0
  }
}

/** Polls the peak memory from the kernel until the process has exited. */
export function watchPeakRss({ pid }: ChildProcess): { bytes: number } {
  const peak = { bytes: 0 }
  const timer = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8')
      peak.bytes = Math.max(peak.bytes, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1_024)
    } catch {
      clearInterval(timer)
    }
  }, 100)
  return peak
}
