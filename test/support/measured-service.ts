import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { emptyFolder } from './ev-process.ts'
import { beginService } from './service-process.ts'
import { waitUntil } from './wait.ts'

const MONITOR = join(import.meta.dirname, 'hold-monitor.mjs')

/** What a piece of work cost a process. */
export type Cost = {
  /** Growth of the resident memory to its peak, in MB. */
  readonly peakMb: number
  /** Longest time for which the event loop was held, in ms on the processor. */
  readonly holdMs: number
}

export type MeasuredService = {
  readonly url: string
  readonly key: string
  readonly home: string
  /** Measures what the service spends on a piece of work. */
  measure(work: () => Promise<unknown>): Promise<Cost>
  end(): Promise<unknown>
}

type MeasureOptions = {
  /** Files in the working directory of the service, by name. */
  readonly files?: Readonly<Record<string, string>>
}

/**
 * Starts a service without limits of addresses whose memory and event loop are measured from
 * `/proc` and by a preloaded module. `EV_LAUNCHER` is the launcher of another installation.
 */
export async function startMeasuredService(
  args: readonly string[] = [],
  { files = {} }: MeasureOptions = {},
): Promise<MeasuredService> {
  const home = emptyFolder()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text)
  const limits = { 'single-per-minute': 1e6, 'bulk-per-hour': 1e6, 'form-per-minute': 1e6 }
  writeFileSync(join(home, 'ev.config.json'), JSON.stringify({ 'ip-limits': limits }))
  const file = join(home, 'hold')
  const launcher = process.env.EV_LAUNCHER
  const service = beginService(home, args, {
    environment: { HOLD_FILE: file, NODE_OPTIONS: `--import=${MONITOR}` },
    ...(launcher === undefined ? {} : { launcher }),
  })
  await service.isUp
  const pid = service.child.pid ?? 0
  const readHold = async () => {
    rmSync(file, { force: true })
    process.kill(pid, 'SIGUSR2')
    await waitUntil(() => existsSync(file) && readFileSync(file, 'utf8') !== '')
    return Number(readFileSync(file, 'utf8'))
  }
  return {
    url: service.url,
    key: service.key,
    home,
    async measure(work) {
      await readHold()
      // Begins the peak anew.
      writeFileSync(`/proc/${pid}/clear_refs`, '5')
      const before = readMemory(pid, 'VmRSS')
      await work()
      const holdMs = Math.round(await readHold())
      return { peakMb: readMemory(pid, 'VmHWM') - before, holdMs }
    },
    end: () => service.end('SIGKILL'),
  }
}

/** Reads a figure of a process in MB (`man 5 proc_pid_status`). */
export function readMemory(pid: number, name: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const line = status.split('\n').find(one => one.startsWith(`${name}:`)) ?? ''
  return Math.round(Number(/\d+/.exec(line)?.[0] ?? 0) / 1024)
}
