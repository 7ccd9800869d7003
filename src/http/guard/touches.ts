import { SECOND } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import { touchKeys } from '../../store/account/keys.ts'
import { writeLoosely } from '../../store/database.ts'
import type { Service } from '../service.ts'

/** When keys were last used: noted at each request, written now and then. */
export interface Touches {
  note(keyId: string): void
  /** Writes what is noted. A power cut may forget it. */
  write(): Promise<void>
}

export function createTouches({ clock, database, log }: Service): Touches {
  let times = new Map<string, number>()
  let cancel: (() => void) | null = null
  async function write(): Promise<void> {
    cancel?.()
    cancel = null
    const noted = times
    times = new Map()
    if (noted.size === 0) return
    try {
      await writeLoosely(database, db => touchKeys({ db }, noted))
    } catch (error) {
      log.warn('it was not written when keys were last used', { why: messageOf(error) })
    }
  }
  return {
    note(keyId) {
      times.set(keyId, clock.now())
      cancel ??= clock.after(WRITE_MS, () => void write())
    },
    write,
  }
}

/** Nobody needs it to the second. */
const WRITE_MS = 10 * SECOND
