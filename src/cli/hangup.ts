import { closeSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'
import { messageOf } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { Lists } from '../engine/lists.ts'
import { listPlan } from '../wire.ts'
import { readConfig } from './settings/settings.ts'

/**
 * Reads own lists and operators again on SIGHUP, by the settings as they then are; where something is bad, all of
 * them stay as they were. Then does what there is to do `also`. Gives what ends that.
 */
export function reloadOnHangup(
  lists: Lists,
  flags: Readonly<Record<string, unknown>>,
  log: Log,
  also: () => void = () => {},
): () => void {
  const hadTerminal = [0, 1, 2].some(descriptor => isatty(descriptor))
  let isEnding = false
  const hear = () => {
    if (!hadTerminal || hasTerminal()) {
      reload(lists, flags, log)
      also()
      return
    }
    // A terminal that goes away sends the same signal, and means that what ran in it is to end. Once: a second
    // SIGTERM would mean "at once".
    if (!isEnding) process.kill(process.pid, 'SIGTERM')
    isEnding = true
  }
  process.on('SIGHUP', hear)
  return () => void process.off('SIGHUP', hear)
}

function reload(lists: Lists, flags: Readonly<Record<string, unknown>>, log: Log): void {
  try {
    lists.reload(listPlan(readConfig(flags)))
    log.info('own lists and operators were read again')
  } catch (error) {
    log.error(`own lists and operators stay as they were. ${messageOf(error)}`)
  }
}

/** The kernel takes it from a whole session when it is hung up. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}
