import { touchKeys } from '../../accounts/key-store.ts'
import { writeAsyncCommit } from '../../db/database.ts'
import { Batcher } from '../../platform/batcher.ts'
import { SECOND } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Service } from '../service.ts'

/** When keys were last used: noted at each request, written now and then. */
export interface LastUsed {
  note(keyId: string): void
  /** Writes what is noted, at once. A power cut may forget it. */
  close(): Promise<unknown>
}

export function createLastUsed({ clock, database, log }: Service): LastUsed {
  const used = new Batcher<KeyUse>({
    ...{ clock, waitMs: WRITE_MS, sizeMax: KEYS_MAX, keyOf: ({ keyId }) => keyId },
    async run(uses) {
      const times = new Map(uses.map(({ keyId, at }) => [keyId, at]))
      await writeAsyncCommit(database, db => touchKeys({ db }, times))
    },
    onFailure(error) {
      log.warn('it was not written when keys were last used', { why: errorMessage(error) })
      return 'reject'
    },
  })
  return {
    note: keyId => void used.add({ keyId, at: clock.now() }),
    close: () => used.close(),
  }
}

type KeyUse = { readonly keyId: string; readonly at: number }

/** Nobody needs it to the second. */
const WRITE_MS = 10 * SECOND
/** Written by one statement. */
const KEYS_MAX = 10_000
