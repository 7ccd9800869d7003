import pg from 'pg'
import type { Clock } from '../../platform/clock.ts'
import { ConnectBackoff } from './connect-backoff.ts'
import { NamedStatements } from './named-statements.ts'

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
