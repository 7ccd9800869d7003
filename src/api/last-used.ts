import { touchKeys } from '../accounts/key-store.ts'
import { writeAsyncCommit } from '../db/database.ts'
import { Batcher } from '../platform/batcher.ts'
import { SECOND } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { writeLog } from '../platform/log.ts'
import type { ServiceDeps } from './service.ts'
import { API_LOG } from './telemetry.ts'

/** Tracks when keys were last used: recorded at each request, written in batches. */
export interface LastUsed {
  note(keyId: string): void
  /** Writes the recorded times at once. A power cut can lose them. */
  close(): Promise<unknown>
}

export function createLastUsed({
  clock,
  database,
  log,
}: Pick<ServiceDeps, 'clock' | 'database' | 'log'>): LastUsed {
  const used = new Batcher<KeyUse>({
    clock,
    waitMs: WRITE_MS,
    sizeMax: KEYS_MAX,
    keyOf: ({ keyId }) => keyId,
    async run(uses) {
      const times = new Map(uses.map(({ keyId, at }) => [keyId, at]))
      await writeAsyncCommit(database, db => touchKeys({ db }, times))
    },
    onFailure(error) {
      writeLog(log, API_LOG.lastUsedNotWritten, { why: errorMessage(error) })
      return 'reject'
    },
  })
  return {
    note: keyId => void used.add({ keyId, at: clock.now() }),
    close: () => used.close(),
  }
}

type KeyUse = { readonly keyId: string; readonly at: number }

/** Last-used times need no precision of seconds. */
const WRITE_MS = 10 * SECOND
/** Keys that are written by one statement. */
const KEYS_MAX = 10_000
