import { listFiles } from '../compose/engine.ts'
import type { ListLoader } from '../engine/lists.ts'
import { errorMessage } from '../platform/error.ts'
import type { Log } from '../platform/log.ts'
import type { CliContext } from './context.ts'
import { readConfig } from './settings.ts'

/**
 * Reads own lists and operators again on SIGHUP, by the settings as they then are; where something is bad, all of
 * them stay as they were. Then does what there is to do `also`. Gives what ends that.
 */
export function reloadOnSighup(
  context: CliContext,
  lists: ListLoader,
  flags: Readonly<Record<string, unknown>>,
  log: Log,
  also: () => void = () => {},
): () => void {
  const hadTerminal = context.terminal.isAttached()
  let isEnding = false
  const onSignal = () => {
    if (!hadTerminal || context.terminal.isOpen()) {
      reload(context, lists, flags, log)
      also()
      return
    }
    // A terminal that goes away sends the same signal, and means that what ran in it is to end. Once: a second
    // SIGTERM would mean "at once".
    if (!isEnding) context.signals.raise('SIGTERM')
    isEnding = true
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
    log.info('own lists and operators were read again')
  } catch (error) {
    log.error(`own lists and operators stay as they were. ${errorMessage(error)}`)
  }
}
