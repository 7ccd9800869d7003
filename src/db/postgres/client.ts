import { LRUCache } from 'lru-cache'
import pg from 'pg'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { ConnectBackoff } from './connect-backoff.ts'

/** pg says null where all is well, whatever its types say. */
type LogState = (error: Error) => void

/**
 * What it tried in vain keeps no process alive: where our side gives up, as without the password that is asked for, the
 * server would wait for us for a minute.
 */
class OpenOrGone extends pg.Client {
  override connect(): Promise<pg.Client>
  override connect(logged: LogState): void
  override connect(logged?: LogState): Promise<pg.Client> | undefined {
    if (logged === undefined) return super.connect()
    super.connect((error: Error | null) => {
      if (error) cutOff(this)
      logged(error as Error)
    })
    return undefined
  }
}

/** Connections of one pool, which name what is run all the time. While `backoff` says so, none is opened. */
export function namingClient(
  clock: Clock,
  backoff: ConnectBackoff = new ConnectBackoff(clock),
): typeof pg.Client {
  const statements = new NamedStatements(clock)
  return class extends OpenOrGone {
    override connect(): Promise<pg.Client>
    override connect(logged: LogState): void
    override connect(logged?: LogState): Promise<pg.Client> | undefined {
      if (logged === undefined) return super.connect()
      const { refusal } = backoff
      if (refusal !== null) {
        // As pg does, never before `connect` has returned.
        process.nextTick(logged, refusal)
        return undefined
      }
      const end = backoff.begin()
      super.connect((error: Error | null) => {
        end(error ?? null)
        logged(error as Error)
      })
      return undefined
    }

    // biome-ignore lint/suspicious/noExplicitAny: As pg has it, in all its forms.
    override query(text: any, ...rest: any[]): any {
      // It goes before, and fails with what follows where the connection is gone.
      if (statements.shouldForgetPlans(this)) super.query('discard plans').catch(() => {})
      const name = typeof text === 'string' ? statements.nameOf(text) : null
      // biome-ignore lint/suspicious/noExplicitAny: The same.
      const query = super.query as (...given: any[]) => any
      return query.call(this, name === null ? text : { name, text }, ...rest)
    }
  }
}

/** An orderly farewell would wait for a server that is silent. */
export function cutOff(client: pg.ClientBase): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}

/** A statement that was run so often is one that is run all the time. */
const USES_MIN = 5
/** Each keeps some ten KB on every connection; ours that are run all the time are fewer. */
const NAMES_MAX = 200
/** What is longer than this holds a list that was written out, and comes but once in this length. */
const TEXT_MAX = 4_000
/** Statements whose uses are counted. */
const COUNTED_MAX = 1_000
/**
 * A plan goes by the size that its tables had: one that was made for an empty one looks through the whole of a long list.
 * PostgreSQL itself notices that only when it counts the rows anew, a minute later.
 */
const PLANS_KEPT_MS = 5 * SECOND

/**
 * Statements that are run all the time have a name, by which a connection to PostgreSQL keeps what it understood of them
 * and how it goes about them: to find that out takes longer than most of them do.
 */
export class NamedStatements {
  readonly #clock: Clock
  readonly #names = new Map<string, string>()
  readonly #uses = new LRUCache<string, number>({ max: COUNTED_MAX })
  readonly #plannedAt = new WeakMap<object, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Null: it goes without, and is looked at anew each time. */
  nameOf(text: string): string | null {
    const known = this.#names.get(text)
    if (known !== undefined) return known
    if (this.#names.size >= NAMES_MAX || text.length > TEXT_MAX || !isPlanned(text)) return null
    const uses = (this.#uses.get(text) ?? 0) + 1
    this.#uses.set(text, uses)
    if (uses < USES_MIN) return null
    const name = `ev${this.#names.size}`
    this.#names.set(text, name)
    this.#uses.delete(text)
    return name
  }

  /** Whether a connection has kept its plans for so long that it should forget them: whoever is told so does it. */
  shouldForgetPlans(connection: object): boolean {
    const now = this.#clock.monotonicNow()
    const plannedAt = this.#plannedAt.get(connection)
    if (plannedAt !== undefined && now - plannedAt < PLANS_KEPT_MS) return false
    this.#plannedAt.set(connection, now)
    return plannedAt !== undefined
  }
}

/** PostgreSQL makes a plan for it, and for it alone. */
const isPlanned = (text: string) =>
  /^\s*(select|insert|update|delete|with)\b/i.test(text) && !text.includes(';')

/**
 * PostgreSQL takes no U+0000 in a text, and lists of people have them. So it goes in as two characters, and the first of
 * these, which nobody uses, as two as well: what was stored is what is read.
 */
const MARK = '\u{10fffe}'

/**
 * JSON can say U+0000 and half a character too, as escapes, and PostgreSQL takes no text out of JSON that does so
 * anywhere: there the mark stands for the beginning of such an escape. What an escaped backslash is followed by is none.
 */
const ESCAPES = /((?<!\\)(?:\\\\)*)\\u(0000|d[89a-f][0-9a-f]{2})/gi

const MARKED = new RegExp(`${MARK}(?:([01])|2([0-9a-f]{4}))`, 'giu')

/** A text as the database can store it. */
export function encodeText(text: string): string {
  const whole =
    text.includes('\0') || text.includes(MARK)
      ? text.replaceAll(MARK, `${MARK}1`).replaceAll('\0', `${MARK}0`)
      : text
  return mayBeJson(whole) ? whole.replace(ESCAPES, `$1${MARK}2$2`) : whole
}

const mayBeJson = (text: string) => /^[[{"]/.test(text) && text.includes('\\u')

export function decodeText(text: string): string {
  if (!text.includes(MARK)) return text
  return text.replace(MARKED, (_, one?: string, hex?: string) =>
    hex === undefined ? (one === '0' ? '\0' : MARK) : `\\u${hex}`,
  )
}

/** A parameter that is not encoded once more. */
export type Encoded = { toPostgres(): string }

/** JSON whose texts are encoded, for what the database itself takes apart. */
export function encodeJson(value: unknown): Encoded {
  const json = JSON.stringify(value, (_, inner) =>
    typeof inner === 'string' ? encodeText(inner).toWellFormed() : inner,
  )
  return { toPostgres: () => json }
}
