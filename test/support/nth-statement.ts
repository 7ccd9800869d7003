import Sqlite from 'better-sqlite3'
import pg from 'pg'
import type { Calls } from './nth-call.ts'
import { replaceMethod } from './replace-method.ts'

type Method = (this: unknown, ...args: unknown[]) => unknown

/** Returns the calls of the run that uses a database; undefined if its statements do not count. */
export type CallsOf = (database: string) => Calls | undefined

/** What SQLite reports if the disk fails. */
const diskError = () => new Sqlite.SqliteError('disk I/O error', 'SQLITE_IOERR')

/** Whether a statement makes something durable, in a transaction or not. */
const isDurable = (text: string, inTransaction: boolean) =>
  /^\s*commit/i.test(text) || (!inTransaction && /^\s*(insert|update|delete|with)\b/i.test(text))

/** Counts the statements of SQLite, and makes one of them fail as if the disk had failed. */
export function watchSqlite(callsOf: CallsOf): void {
  type Statement = { readonly database: Sqlite.Database; readonly source: string }
  const statements = Object.getPrototypeOf(new Sqlite(':memory:').prepare('select 1')) as object
  for (const name of ['run', 'all', 'get', 'iterate']) {
    replaceMethod(statements, name, original => {
      return function (this: unknown, ...args: unknown[]) {
        const { database, source } = this as Statement
        // A test reads without being counted.
        const calls = database.readonly ? undefined : callsOf(database.name)
        if (calls === undefined) return original.apply(this, args)
        if (calls.take('statement', source) !== null) throw diskError()
        const canBeLost = isDurable(source, database.inTransaction)
        const result = original.apply(this, args)
        if (canBeLost && calls.take('commit', source) !== null) throw diskError()
        return result
      } satisfies Method
    })
  }
}

/** The error of a connection that was lost. */
const connectionLost = () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })

type Client = {
  readonly database: string
  readonly connectionParameters: { readonly application_name?: string }
  readonly connection: { readonly stream: { destroy(): void } }
}

/** Counts the statements on PostgreSQL, and cuts the connection before or after one of them. */
export function watchPostgres(callsOf: CallsOf): void {
  const inTransaction = new WeakSet<object>()
  replaceMethod(pg.Client.prototype, 'query', original => {
    return function (this: unknown, ...args: unknown[]) {
      const client = this as Client
      const text = textOf(args[0])
      // A test reads without being counted.
      const isOwn = client.connectionParameters.application_name?.startsWith('ev') === true
      const calls = isOwn ? callsOf(client.database) : undefined
      if (calls === undefined || text === null) return original.apply(this, args)
      const cut = () => client.connection.stream.destroy()
      if (calls.take('statement', text) !== null) {
        // The driver reports the lost connection.
        cut()
        return original.apply(this, args)
      }
      const canBeLost = isDurable(text, inTransaction.has(client))
      if (/^\s*(begin|start transaction)/i.test(text)) inTransaction.add(client)
      if (/^\s*(commit|rollback)/i.test(text)) inTransaction.delete(client)
      if (!canBeLost || calls.take('commit', text) === null) return original.apply(this, args)
      const callback = args.at(-1)
      if (typeof callback === 'function') {
        const lost = () => {
          cut()
          callback(connectionLost())
        }
        return original.apply(this, [...args.slice(0, -1), lost])
      }
      return (original.apply(this, args) as Promise<unknown>).then(() => {
        cut()
        throw connectionLost()
      })
    } satisfies Method
  })
}

function textOf(query: unknown): string | null {
  if (typeof query === 'string') return query
  if (typeof query !== 'object' || query === null || !('text' in query)) return null
  return typeof query.text === 'string' ? query.text : null
}
