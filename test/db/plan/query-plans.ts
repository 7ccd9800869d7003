import { CompiledQuery, type KyselyPlugin, type RootOperationNode } from 'kysely'
import pg from 'pg'
import type { Database } from '../../../src/db/database.ts'
import { type Encoded, encodeText } from '../../../src/db/postgres/client.ts'

/**
 * The query plans of all that runs on the database meanwhile, line by line. What PostgreSQL says hangs on how many rows
 * there are, and on what it knows of them (`analyze`).
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
  const [db, reader, loose] = [database.db, database.reader, database.asyncDb].map(one =>
    one.withPlugin(spy),
  )
  await run({ ...database, ...(db && reader && loose && { db, reader, asyncDb: loose }) })
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
  // Without their values: a plan that hangs on one is made anew for each.
  const nothing = parameters.map(() => null)
  const { rows } = await db.executeQuery<{ detail: string }>(
    CompiledQuery.raw(`explain query plan ${sql}`, nothing),
  )
  return rows.map(({ detail }) => detail)
}

/** From so many on PostgreSQL may keep one plan for all values, where that seems as good. */
const KEPT_AFTER = 5

/** The plan for these values, and the one that a connection keeps when the statement was run often. */
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
