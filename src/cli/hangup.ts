import { messageOf } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { Lists } from '../engine/lists.ts'
import { listPlan } from '../wire.ts'
import type { CliContext } from './context.ts'
import { readConfig } from './settings/settings.ts'

/**
 * Reads own lists and operators again on SIGHUP, by the settings as they then are; where something is bad, all of
 * them stay as they were. Then does what there is to do `also`. Gives what ends that.
 */
export function reloadOnHangup(
  context: CliContext,
  lists: Lists,
  flags: Readonly<Record<string, unknown>>,
  log: Log,
  also: () => void = () => {},
): () => void {
  const hadTerminal = context.terminal.isAttached()
  let isEnding = false
  const hear = () => {
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
  context.signals.on('SIGHUP', hear)
  return () => void context.signals.off('SIGHUP', hear)
}

function reload(
  context: CliContext,
  lists: Lists,
  flags: Readonly<Record<string, unknown>>,
  log: Log,
): void {
  try {
    lists.reload(listPlan(readConfig(context, flags)))
    log.info('own lists and operators were read again')
  } catch (error) {
    log.error(`own lists and operators stay as they were. ${messageOf(error)}`)
  }
}
