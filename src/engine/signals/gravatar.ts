import { createHash } from 'node:crypto'
import { type Clock, DAY, HOUR } from '../../platform/clock.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { type Address, addressKey } from '../address/address.ts'
import { ENGINE_LOG } from '../telemetry.ts'
import type { Signal } from '../verdict/verdict.ts'
import { SIGNAL_SHIFTS } from './signal.ts'

/** Sends a GET request and returns the status. Rejects if there is no response. */
export type GetStatus = (
  url: string,
  options: { readonly headers: Readonly<Record<string, string>>; readonly signal: AbortSignal },
) => Promise<number>

type GravatarDeps = {
  readonly apiKey: string
  readonly getStatus: GetStatus
  readonly clock: Clock
  readonly log: Log
}

/** https://docs.gravatar.com/rest-api: 200 with a profile, 404 without one. */
const PROFILES_URL = 'https://api.gravatar.com/v3/profiles/'
/** A profile rarely appears or disappears, and a key has 1,000 requests per hour. */
const ANSWER_TTL_MS = DAY
/** Answers in memory, about 200 bytes each. */
const ANSWERS_MAX = 20_000
/** The limit of Gravatar counts by hour. A refused key is tried again after the same time. */
const PAUSE_MS = HOUR

/** Asks Gravatar for profiles of addresses, by their hash. */
export class Gravatar {
  readonly #deps: GravatarDeps
  readonly #answers: TtlMap<{ readonly exists: boolean }>
  #pausedUntil = 0

  constructor(deps: GravatarDeps) {
    this.#deps = deps
    this.#answers = new TtlMap({ sizeMax: ANSWERS_MAX, clock: deps.clock })
  }

  /** Returns a signal if the address has a profile. A failure is not a signal. */
  async findSignals(address: Address, signal: AbortSignal): Promise<Signal[]> {
    const { clock } = this.#deps
    const hash = createHash('sha256').update(addressKey(address).toLowerCase()).digest('hex')
    const known = this.#answers.get(hash)
    if (known !== undefined) return toSignals(known.exists)
    if (clock.monotonicNow() < this.#pausedUntil) return []
    const status = await this.#ask(hash, signal)
    if (status !== 200 && status !== 404) return []
    this.#answers.set(hash, { exists: status === 200 }, ANSWER_TTL_MS)
    return toSignals(status === 200)
  }

  async #ask(hash: string, signal: AbortSignal): Promise<number | null> {
    const { apiKey, getStatus, clock, log } = this.#deps
    const headers = { Authorization: `Bearer ${apiKey}`, Accept: 'application/json' }
    try {
      const status = await getStatus(PROFILES_URL + hash, { headers, signal })
      if (status === 429 || status === 401 || status === 403) {
        this.#pausedUntil = clock.monotonicNow() + PAUSE_MS
        const why = status === 429 ? 'its rate limit is reached' : 'it refused the API key'
        writeLog(log, ENGINE_LOG.gravatarPaused, { why, status })
      }
      return status
    } catch {
      return null
    }
  }
}

const toSignals = (exists: boolean): Signal[] =>
  exists
    ? [
        {
          name: 'gravatar',
          shift: SIGNAL_SHIFTS.gravatar,
          detail: 'The address has a Gravatar profile.',
        },
      ]
    : []
