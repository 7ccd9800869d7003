import { listFiles } from '../compose/engine.ts'
import type { ListLoader } from '../engine/lists.ts'
import { errorMessage } from '../platform/error.ts'
import { type Log, writeLog } from '../platform/log.ts'
import type { CliContext } from './context.ts'
import { readConfig } from './settings.ts'
import { CLI_LOG } from './telemetry.ts'

/**
 * Reloads custom lists and operators on SIGHUP, with the settings read again, and then calls
 * `also`. If one of them is invalid, all stay unchanged. Returns a function that removes the
 * listener.
 */
export function reloadOnSighup(
  context: CliContext,
  lists: ListLoader,
  flags: Readonly<Record<string, unknown>>,
  log: Log,
  also: () => void = () => {},
): () => void {
  const hadTerminal = context.terminal.isAttached()
  let isStopping = false
  const onSignal = () => {
    if (!hadTerminal || context.terminal.isOpen()) {
      reload(context, lists, flags, log)
      also()
      return
    }
    // A terminal that closes sends SIGHUP too, to stop its processes. Raise SIGTERM only once: a
    // second one exits without cleanup.
    if (!isStopping) context.signals.raise('SIGTERM')
    isStopping = true
  }
  context.signals.on('SIGHUP', onSignal)
  return () => void context.signals.off('SIGHUP', onSignal)
}

function reload(
  context: CliContext,
  lists: ListLoader,
  flags: Readonly<Record<string, unknown>>,
  log: Log,
): void {
  try {
    lists.reload(listFiles(readConfig(context, flags)))
    writeLog(log, CLI_LOG.listsReloaded)
  } catch (error) {
    writeLog(log, CLI_LOG.listsNotReloaded, {}, errorMessage(error))
  }
}
