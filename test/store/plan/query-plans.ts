import { CompiledQuery, type KyselyPlugin, type RootOperationNode } from 'kysely'
import type { Database } from '../../../src/store/database.ts'

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
  const [db, reader, loose] = [database.db, database.reader, database.loose].map(one =>
    one.withPlugin(spy),
  )
  await run({ ...database, ...(db && reader && loose && { db, reader, loose }) })
  const plans: string[] = []
  for (const node of nodes) {
    const query = database.db.getExecutor().compileQuery(node, { queryId: 'plan' } as never)
    if (/^\s*(pragma|set|select pg_advisory)/i.test(query.sql)) continue
    plans.push(...(await planOf(database, query)))
  }
  return plans
}

async function planOf({ db, dialect }: Database, { sql, parameters }: CompiledQuery) {
  if (dialect === 'postgres') {
    // For these values, and for whatever values there are, as it is planned once for many.
    const both = [
      CompiledQuery.raw(`explain (costs off) ${sql}`, [...parameters]),
      CompiledQuery.raw(`explain (costs off, generic_plan) ${sql}`),
    ]
    const plans = both.map(explain => db.executeQuery<{ 'QUERY PLAN': string }>(explain))
    return (await Promise.all(plans)).flatMap(({ rows }) => rows.map(row => row['QUERY PLAN']))
  }
  // Without their values: a plan that hangs on one is made anew for each.
  const nothing = parameters.map(() => null)
  const { rows } = await db.executeQuery<{ detail: string }>(
    CompiledQuery.raw(`explain query plan ${sql}`, nothing),
  )
  return rows.map(({ detail }) => detail)
}
