import type { Database } from '../../db/database.ts'

export type TotalUsage = {
  readonly class: string
  readonly verifications: number
  /** How many of these were answered from memory. */
  readonly cached: number
}

/** What all accounts verified in all, by class. */
export async function totalUsage({ db }: Database): Promise<TotalUsage[]> {
  const rows = await db
    .selectFrom('usage')
    .select(eb => [
      'class',
      eb.fn.sum<number>('verifications').as('verifications'),
      eb.fn.sum<number>('cached').as('cached'),
    ])
    .groupBy('class')
    .execute()
  return rows.map(row => ({
    class: row.class,
    verifications: Number(row.verifications),
    cached: Number(row.cached),
  }))
}
