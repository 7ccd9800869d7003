import { CompiledQuery, type KyselyPlugin, type RootOperationNode } from 'kysely'
import type { Database } from '../../src/store/database.ts'

/** The query plans of all that runs on the database meanwhile. */
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
  const [db, reader] = [database.db, database.reader].map(one => one.withPlugin(spy))
  await run({ ...database, ...(db && reader && { db, reader }) })
  const plans: string[] = []
  for (const node of nodes) {
    const { sql, parameters } = database.db
      .getExecutor()
      .compileQuery(node, { queryId: 'plan' } as never)
    if (/^\s*pragma/i.test(sql)) continue
    // Without their values: a plan that hangs on one is made anew for each.
    const nothing = parameters.map(() => null)
    const explain = CompiledQuery.raw(`explain query plan ${sql}`, nothing)
    const { rows } = await database.db.executeQuery<{ detail: string }>(explain)
    plans.push(...rows.map(({ detail }) => detail))
  }
  return plans
}
