import { CompiledQuery, type KyselyPlugin, type RootOperationNode } from 'kysely'
import pg from 'pg'
import type { Database } from '../../../src/db/database.ts'
import { type Encoded, encodeText } from '../../../src/db/postgres/encoding.ts'

/**
 * Returns the query plans of all statements that `run` executes, line by line. The plans of
 * PostgreSQL depend on the number of rows and on its statistics (`analyze`).
 */
export async function plansOf(
  database: Database,
  run: (database: Database) => Promise<unknown>,
): Promise<string[]> {
  const nodes: RootOperationNode[] = []
  const spy: KyselyPlugin = {
    transformQuery({ node }) {
      nodes.push(node)
      return node
    },
    transformResult: async ({ result }) => result,
  }
  const [db, reader, asyncDb] = [database.db, database.reader, database.asyncDb].map(one =>
    (one as Database['db']).withPlugin(spy),
  )
  await run({ ...database, ...(db && reader && asyncDb && { db, reader, asyncDb }) })
  const plans: string[] = []
  for (const node of nodes) {
    const query = database.db.getExecutor().compileQuery(node, { queryId: 'plan' } as never)
    if (/^\s*(pragma|set|select pg_advisory)/i.test(query.sql)) continue
    plans.push(...(await planOf(database, query)))
  }
  return plans
}

async function planOf({ db, dialect }: Database, { sql, parameters }: CompiledQuery) {
  if (dialect === 'postgres') return plansOnServer(db, { sql, parameters })
  // Without values: custom plans are made for each value. A statement that runs once for each row
  // has the rows as its only parameter.
  const isEach = sql.startsWith('/* each ? */')
  const count = isEach ? sql.split('?').length - 2 : parameters.length
  const nothing = Array.from({ length: count }, () => null)
  const { rows } = await db.executeQuery<{ detail: string }>(
    CompiledQuery.raw(`explain query plan ${sql}`, nothing),
  )
  return rows.map(({ detail }) => detail)
}

/** Executions after which PostgreSQL may use a generic plan. */
const KEPT_AFTER = 5

/** The custom plan for these values, and the generic plan of a frequent statement. */
function plansOnServer(
  db: Database['db'],
  { sql, parameters }: Pick<CompiledQuery, 'sql' | 'parameters'>,
): Promise<string[]> {
  const values = parameters.map(literalOf)
  const given = values.length === 0 ? '' : `(${values.join(', ')})`
  return db.connection().execute(async connection => {
    const run = (text: string, own: readonly unknown[] = []) =>
      connection.executeQuery<{ 'QUERY PLAN': string }>(CompiledQuery.raw(text, [...own]))
    const first = await run(`explain (costs off) ${sql}`, parameters)
    await run(`prepare planned as ${sql}`)
    try {
      const execute = `explain (costs off) execute planned${given}`
      for (let n = 0; n < KEPT_AFTER; n++) await run(execute)
      const kept = await run(execute)
      return [...first.rows, ...kept.rows].map(row => row['QUERY PLAN'])
    } finally {
      await run('deallocate planned')
    }
  })
}

function literalOf(value: unknown): string {
  if (typeof value === 'string') return pg.escapeLiteral(encodeText(value))
  if (value !== null && typeof value === 'object' && 'toPostgres' in value) {
    return pg.escapeLiteral((value as Encoded).toPostgres())
  }
  return String(value)
}
