import { type Clock, MINUTE, SECOND } from './clock.ts'

/** Where ev reports what happens inside, as a door to the world. Fields never hold secrets. */
export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

/** What is said again within this time is the same trouble: whoever tries again does so every few seconds. */
const SAME_MS = 15 * SECOND
/** So often trouble that goes on is told of. */
const REMIND_MS = MINUTE
/** Different things that are remembered as said; the one that was said first is forgotten beyond that. */
const SAID_MAX = 500

type Said = { toldAt: number; at: number; untold: number }

/**
 * A log for whoever tries again by itself: a warning or error that is word for word what was said a moment ago is told
 * once, then once a minute while it goes on, with how often it was `repeated`.
 */
export function calmLog(log: Log, clock: Clock): Log {
  const said = new Map<string, Said>()
  const calm = (level: 'warn' | 'error') => (message: string, fields?: LogFields) => {
    const now = clock.ticks()
    const key = JSON.stringify([level, message, { ...fields, stack: null }])
    const before = said.get(key)
    if (before === undefined || now - before.at > SAME_MS) {
      log[level](message, fields)
      note(said, key, { toldAt: now, at: now, untold: 0 })
    } else if (now - before.toldAt < REMIND_MS) {
      before.at = now
      before.untold++
    } else {
      log[level](message, { ...fields, repeated: before.untold })
      note(said, key, { toldAt: now, at: now, untold: 0 })
    }
  }
  const { debug, info } = log
  return { debug, info, warn: calm('warn'), error: calm('error') }
}

function note(said: Map<string, Said>, key: string, one: Said): void {
  said.delete(key)
  said.set(key, one)
  for (const oldest of said.keys()) {
    if (said.size <= SAID_MAX) return
    said.delete(oldest)
  }
}
