import type { CliContext } from '../context.ts'

/** The key that finishes the list. */
const FINISH = 'f'

/**
 * Keys that a terminal turns into a signal, which it does not while single keys are read: Ctrl-C,
 * Ctrl-\ and Ctrl-Z.
 */
const CONTROL_KEYS: ReadonlyMap<string, 'SIGINT' | 'SIGQUIT' | 'SIGTSTP'> = new Map([
  ['\u0003', 'SIGINT'],
  ['\u001c', 'SIGQUIT'],
  ['\u001a', 'SIGTSTP'],
])

type FinishKey = {
  /** The end of a line about a wait, which names the key; empty if the key is not read. */
  readonly hint: () => string
  /** Reads no more keys, and returns the terminal to its previous mode. */
  readonly dispose: () => void
}

/**
 * Calls `finish` when the user presses the key, once. Reads no keys unless stdin and stderr are a
 * terminal with this process in its foreground: the kernel stops a process in the background that
 * reads keys. After Ctrl-Z the process may continue there, so no more keys are read then.
 */
export function onFinishKey(context: CliContext, finish: () => void): FinishKey {
  const { stdin, stderr, terminal } = context
  const { isTTY: isTerminal = false, setRawMode } = stdin
  const canRead =
    isTerminal && !stdin.readableEnded && stderr.isTTY === true && terminal.isForeground()
  if (!canRead || setRawMode === undefined) return { hint: () => '', dispose: () => {} }
  let isReading = true
  const dispose = () => {
    if (!isReading) return
    isReading = false
    stdin.off('data', onData)
    stdin.pause()
    setRawMode.call(stdin, false)
  }
  const onData = (data: Buffer | string) => {
    for (const key of data.toString()) {
      const signal = CONTROL_KEYS.get(key)
      if (signal === 'SIGTSTP') dispose()
      if (signal !== undefined) terminal.sendSignal(signal)
      if (key.toLowerCase() !== FINISH || !isReading) continue
      dispose()
      finish()
    }
  }
  setRawMode.call(stdin, true)
  stdin.on('data', onData)
  return {
    hint: () => (isReading ? ` Press ${FINISH} to finish now (--no-wait never waits).` : ''),
    dispose,
  }
}
