import { type Clock, DAY, HOUR, SECOND, sleep } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { ENGINE_LOG } from '../telemetry.ts'

/** Names of servers with a witness; a server has up to three. */
export const WITNESSES_MAX = 20_000
/** How long an accepted recipient is asked again: mailboxes are rarely closed within a day. */
export const WITNESS_MS = DAY
/** Interval between two writes of the witness of a server. */
const STORE_EVERY_MS = HOUR
/** A verification does not wait longer for the witnesses of earlier processes. */
const LOAD_TIMEOUT_MS = SECOND
/**
 * Rejections in a row after which the witness of a server is asked again: one or two are common in
 * any list, and a server that counts them allows more.
 */
const REJECTED_IN_A_ROW_MAX = 3

/**
 * The names under which a server is known, the most specific first: its IP address, unless customers
 * share it, its host name, and the hosts of the same preference. They usually share their limits and
 * their mailboxes.
 */
export type ServerKeys = readonly string[]

/** A recipient that a server has answered. */
export type AnsweredRecipient = { readonly domain: string; readonly recipient: string }

/** The last recipient that a server accepted. */
export type Witness = AnsweredRecipient & {
  /** Whether the server ever rejected its witness, too. */
  readonly hasRejectedAll: boolean
}

type KnownWitness = {
  -readonly [K in keyof Witness]: Witness[K]
} & {
  /** Epoch ms. */
  readonly acceptedAt: number
  /** Recipients that the server has rejected since then. */
  rejectedInARow: number
  /** All recipients that the server has rejected. */
  rejected: number
  /** When the witness of the server was stored last, epoch ms. */
  storedAt: number
}

/** The witness of a server, as it is stored. Plain data. */
export type StoredWitness = {
  /** One of the names of the server. */
  readonly server: string
  readonly recipient: string
  /** Epoch ms. */
  readonly acceptedAt: number
}

/** Storage of witnesses for later processes: none by default, the database for lists. */
export interface WitnessStore {
  /** Returns those of the last `WITNESS_MS`: the newest `WITNESSES_MAX` at most. */
  load(): Promise<readonly StoredWitness[]>
  /** Adds one, or replaces that of the server. Never throws. */
  put(witness: StoredWitness): void
}

type Deps = {
  readonly clock: Clock
  readonly log: Log
  /** Null to keep witnesses in this process only. */
  readonly store: WitnessStore | null
}

/**
 * The last accepted recipient of each server. After too many unknown recipients, some servers reject
 * everyone for a time; then they reject this one, too. Such a time may outlast the process, so the
 * witnesses of servers that have rejected several recipients are stored.
 */
export class Witnesses {
  readonly #deps: Deps
  readonly #known: TtlMap<KnownWitness>
  #loading: Promise<void> | null = null

  constructor(deps: Deps) {
    this.#deps = deps
    this.#known = new TtlMap({ sizeMax: WITNESSES_MAX, clock: deps.clock })
  }

  /**
   * Loads the witnesses of earlier processes. Wait for it before the first reply; later it resolves
   * at once. Never rejects. Null if there is no store.
   */
  load(): Promise<void> | null {
    const { clock, store } = this.#deps
    if (store === null) return null
    this.#loading ??= Promise.race([this.#loadFrom(store), sleep(clock, LOAD_TIMEOUT_MS)])
    return this.#loading
  }

  async #loadFrom(store: WitnessStore): Promise<void> {
    const { clock, log } = this.#deps
    try {
      for (const { server, recipient, acceptedAt } of await store.load()) {
        const leftMs = acceptedAt + WITNESS_MS - clock.now()
        // A recipient that this process knows was accepted later.
        if (leftMs <= 0 || this.#known.get(server) !== undefined) continue
        const domain = recipient.slice(recipient.lastIndexOf('@') + 1)
        const counts = { rejectedInARow: 0, rejected: 0, storedAt: acceptedAt }
        const witness = { domain, recipient, acceptedAt, ...counts, hasRejectedAll: false }
        this.#known.set(server, witness, leftMs)
      }
    } catch (error) {
      writeLog(log, ENGINE_LOG.witnessesNotRead, { error: errorMessage(error) })
    }
  }

  /** Records that a server accepted a recipient, so that it does not reject everyone. */
  noteAccepted(server: ServerKeys, domain: string, recipient: string): void {
    const { hasRejectedAll = false, rejected = 0, storedAt = 0 } = this.#get(server) ?? {}
    const acceptedAt = this.#deps.clock.now()
    const counts = { rejectedInARow: 0, rejected, storedAt }
    const witness = { domain, recipient, acceptedAt, ...counts, hasRejectedAll }
    for (const key of server) this.#known.set(key, witness, WITNESS_MS)
  }

  /** Counts a rejection by a server that has a witness. */
  noteRejected(server: ServerKeys): void {
    const known = this.#get(server)
    if (known === undefined) return
    known.rejectedInARow++
    known.rejected++
  }

  /** Stores the witness of a server that may soon reject everyone. */
  store(server: ServerKeys): void {
    const { clock, store } = this.#deps
    const known = this.#get(server)
    if (store === null || known === undefined || known.rejected < REJECTED_IN_A_ROW_MAX) return
    const now = clock.now()
    if (now - known.storedAt < STORE_EVERY_MS) return
    known.storedAt = now
    const { recipient, acceptedAt } = known
    for (const key of server) store.put({ server: key, recipient, acceptedAt })
  }

  /** Records that a server rejected its witness: it rejects everyone. */
  noteAllRejected(server: ServerKeys): void {
    const known = this.#get(server)
    if (known !== undefined) known.hasRejectedAll = true
  }

  /** Forgets the witness of a connection whose replies did not belong to their commands. */
  forget(server: ServerKeys): void {
    for (const key of server) this.#known.delete(key)
  }

  /**
   * Returns the witness of a server, to be asked again after so many rejections in a row of a
   * connection, of several ones, or of the hosts with its preference; null if there is none, or if
   * these are too few.
   */
  find(server: ServerKeys, rejectedInARow: number): Witness | null {
    const known = this.#get(server)
    if (known === undefined) return null
    const peers = this.#known.get(server.at(-1) ?? '') ?? known
    const count = Math.max(rejectedInARow, known.rejectedInARow, peers.rejectedInARow)
    const hasRejectedAll = known.hasRejectedAll || peers.hasRejectedAll
    return count >= (hasRejectedAll ? 1 : REJECTED_IN_A_ROW_MAX) ? known : null
  }

  #get(server: ServerKeys): KnownWitness | undefined {
    for (const key of server) {
      const known = this.#known.get(key)
      if (known !== undefined) return known
    }
    return undefined
  }
}
