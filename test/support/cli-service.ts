import type { CliSignal } from '../../src/cli/context.ts'
import { startEv } from './cli.ts'
import type { Ran } from './home.ts'

/** `ev serve` running in this process. */
export type CliService = {
  /** The URL from its log. */
  readonly url: string
  /** The output on stdout: the first key, at the first start. */
  readonly key: string
  readonly ended: Promise<Ran>
  /** Sends a signal and resolves when the service has ended. */
  end(signal: CliSignal): Promise<Ran>
}

/** Starts the service in a folder, on a free port, with the data directory `data`. */
export async function startService(
  home: string,
  args: readonly string[] = [],
): Promise<CliService> {
  const all = ['serve', '--data-dir', 'data', '--listen', '127.0.0.1:0', ...args]
  const running = startEv(all, { home })
  await running.printed('API documentation:', 'stderr')
  return {
    ended: running.ended,
    get url() {
      return /listening on (\S+?)"/.exec(running.stderr)?.[1] ?? ''
    },
    get key() {
      return running.stdout.trim()
    },
    end(signal) {
      running.signal(signal)
      return running.ended
    },
  }
}
