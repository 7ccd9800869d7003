import { type EvOptions, type Ran, type Running, startEv } from './ev-process.ts'

/** `ev serve` in a process of its own. */
export type ServiceProcess = Pick<Running, 'child' | 'ended'> & {
  /** As it says that it listens. */
  readonly url: string
  /** What was printed on stdout: the first key, at the first start. */
  readonly key: string
  /** Sends a signal, and resolves when the process has ended. */
  end(signal: NodeJS.Signals): Promise<Ran>
}

/** Starts the service in a folder, on a port that is free; its data lie in `data`. */
export async function startService(
  home: string,
  args: readonly string[] = [],
): Promise<ServiceProcess> {
  const service = beginService(home, args)
  await service.isUp
  return service
}

/** The same, for who does not wait until it is up. */
export function beginService(
  home: string,
  args: readonly string[] = [],
  options: Omit<EvOptions, 'home'> = {},
): ServiceProcess & { readonly isUp: Promise<void> } {
  const dataDir = args.includes('--data-dir') ? [] : ['--data-dir', 'data']
  const all = ['serve', ...dataDir, '--listen', '127.0.0.1:0', ...args]
  const running = startEv(all, { ...options, home })
  const heard = { out: '', log: '' }
  running.child.stdout?.on('data', text => {
    heard.out += text
  })
  running.child.stderr?.on('data', text => {
    heard.log += text
  })
  const { child, ended } = running
  const isUp = async () => {
    await running.printed('API documentation:', 'stderr')
    // It comes by another pipe.
    if (heard.log.includes('The first key')) await running.printed('\n', 'stdout')
  }
  return {
    ...{ child, ended, isUp: isUp() },
    get url() {
      return /listening on (\S+?)"/.exec(heard.log)?.[1] ?? ''
    },
    get key() {
      return heard.out.trim()
    },
    end(signal) {
      child.kill(signal)
      return ended
    },
  }
}

/** Asks a service that may be killed meanwhile. Null: no whole answer came. */
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
