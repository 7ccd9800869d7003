import { type EvOptions, type Ran, type Running, startEv } from './ev-process.ts'

/** An `ev serve` process. */
export type ServiceProcess = Pick<Running, 'child' | 'ended'> & {
  /** The URL from its log. */
  readonly url: string
  /** The output on stdout: the first key, at the first start. */
  readonly key: string
  /** Sends a signal and resolves when the process has ended. */
  end(signal: NodeJS.Signals): Promise<Ran>
}

/** Starts the service in a folder, on a free port, with the data directory `data`. */
export async function startService(
  home: string,
  args: readonly string[] = [],
): Promise<ServiceProcess> {
  const service = beginService(home, args)
  await service.isUp
  return service
}

/** The same without waiting until it is up. */
export function beginService(
  home: string,
  args: readonly string[] = [],
  options: Omit<EvOptions, 'home'> = {},
): ServiceProcess & { readonly isUp: Promise<void> } {
  const dataDir = args.includes('--data-dir') ? [] : ['--data-dir', 'data']
  const all = ['serve', ...dataDir, '--listen', '127.0.0.1:0', ...args]
  const running = startEv(all, { ...options, home })
  const output = { out: '', log: '' }
  running.child.stdout?.on('data', text => {
    output.out += text
  })
  running.child.stderr?.on('data', text => {
    output.log += text
  })
  const { child, ended } = running
  const isUp = async () => {
    await running.printed('API documentation:', 'stderr')
    // The key arrives on another pipe.
    if (output.log.includes('The first key')) await running.printed('\n', 'stdout')
  }
  return {
    child,
    ended,
    isUp: isUp(),
    get url() {
      return /listening on (\S+?)"/.exec(output.log)?.[1] ?? ''
    },
    get key() {
      return output.out.trim()
    },
    end(signal) {
      child.kill(signal)
      return ended
    },
  }
}

/**
 * Sends a request to a service that may be killed. Returns null if no complete response arrived.
 */
export async function wholeAnswer(
  url: string,
  init: Pick<RequestInit, 'method' | 'headers' | 'body'>,
): Promise<{ readonly status: number; readonly text: string } | null> {
  try {
    const response = await fetch(url, init)
    return { status: response.status, text: await response.text() }
  } catch {
    return null
  }
}
