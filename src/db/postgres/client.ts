import { LRUCache } from 'lru-cache'
import pg from 'pg'
import { type Clock, SECOND } from '../../platform/clock.ts'
import { ConnectBackoff } from './connect-backoff.ts'

/**
 * Returns the URL for pg, with `verify-full` for the modes that mean the same: pg warns about them,
 * because a later version will not verify the server with them.
 */
export const connectionString = (url: string): string =>
  /[?&]uselibpqcompat=true(&|$)/.test(url)
    ? url
    : url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full')

/** Called with null on success, contrary to the types of pg. */
type ConnectCallback = (error: Error) => void

/**
 * Closes the socket after a failed connection attempt. If our side gives up, as without a password,
 * the server would keep the connection, and so this process, open for a minute.
 */
class SelfClosingClient extends pg.Client {
  override connect(): Promise<pg.Client>
  override connect(onConnect: ConnectCallback): void
  override connect(onConnect?: ConnectCallback): Promise<pg.Client> | undefined {
    if (onConnect === undefined) return super.connect()
    super.connect((error: Error | null) => {
      if (error) cutOff(this)
      onConnect(error as Error)
    })
    return undefined
  }
}

/**
 * Returns the client class of a pool. Its clients use named prepared statements for frequent
 * queries and open no connection while `backoff` forbids it.
 */
export function createClientClass(
  clock: Clock,
  backoff: ConnectBackoff = new ConnectBackoff(clock),
): typeof pg.Client {
  const statements = new NamedStatements(clock)
  return class extends SelfClosingClient {
    override connect(): Promise<pg.Client>
    override connect(onConnect: ConnectCallback): void
    override connect(onConnect?: ConnectCallback): Promise<pg.Client> | undefined {
      if (onConnect === undefined) return super.connect()
      const { refusal } = backoff
      if (refusal !== null) {
        // Asynchronous, as in pg.
        process.nextTick(onConnect, refusal)
        return undefined
      }
      const end = backoff.begin()
      super.connect((error: Error | null) => {
        end(error ?? null)
        onConnect(error as Error)
      })
      return undefined
    }

    // biome-ignore lint/suspicious/noExplicitAny: overrides all overloads of pg.
    override query(text: any, ...rest: any[]): any {
      // Queued before the query. If the connection is lost, the query reports it.
      if (statements.shouldForgetPlans(this)) super.query('discard plans').catch(() => {})
      const name = typeof text === 'string' ? statements.nameOf(text) : null
      // biome-ignore lint/suspicious/noExplicitAny: calls any overload of pg.
      const query = super.query as (...args: any[]) => any
      return query.call(this, name === null ? text : { name, text }, ...rest)
    }
  }
}

/** Destroys the socket: a regular disconnect would wait for a server that does not respond. */
export function cutOff(client: pg.ClientBase): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } }
  connection.stream.destroy()
}

/** Executions after which a statement is named. */
const USES_MIN = 5
/** Each named statement takes about 10 KB per connection; ev has fewer frequent ones. */
const NAMES_MAX = 200
/** A longer text contains an inlined list and is not repeated. */
const TEXT_MAX = 4_000
/** Statements whose executions are counted. */
const COUNTED_MAX = 1_000
/**
 * Plans depend on the table sizes at planning time: a plan made for an empty table scans a full
 * one. PostgreSQL itself replans only after autovacuum has analyzed the table, a minute later.
 */
const PLAN_TTL_MS = 5 * SECOND

/**
 * Assigns names to frequent statements, so that PostgreSQL keeps them parsed and planned for each
 * connection: parsing and planning take longer than most of them run.
 */
export class NamedStatements {
  readonly #clock: Clock
  readonly #names = new Map<string, string>()
  readonly #uses = new LRUCache<string, number>({ max: COUNTED_MAX })
  readonly #plannedAt = new WeakMap<object, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns the name of a statement; null if it is not prepared. */
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

  /**
   * Whether the plans of a connection are too old. The caller must then discard them, as the age is
   * reset.
   */
  shouldForgetPlans(connection: object): boolean {
    const now = this.#clock.monotonicNow()
    const plannedAt = this.#plannedAt.get(connection)
    if (plannedAt !== undefined && now - plannedAt < PLAN_TTL_MS) return false
    this.#plannedAt.set(connection, now)
    return plannedAt !== undefined
  }
}

/** Whether the text is a single statement that PostgreSQL plans. */
const isPlanned = (text: string) =>
  /^\s*(select|insert|update|delete|with)\b/i.test(text) && !text.includes(';')
