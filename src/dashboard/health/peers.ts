import { readRates } from '../../cluster/rate-control/rows.ts'
import type { Database } from '../../db/database.ts'
import { isDomainKey } from '../../engine/probe/domain-blocks.ts'
import type { OperatorsDeps } from './operators.ts'
import type { PeerBlock } from './source.ts'

/** Operators that refuse egresses by which this process does not ask; those of other processes, which have no page. */
export async function blocksElsewhere(
  database: Database,
  { egressPool, titleOf }: Pick<OperatorsDeps, 'egressPool' | 'titleOf'>,
): Promise<readonly PeerBlock[]> {
  if (database.dialect === 'sqlite') return []
  const { now, records } = await readRates(database, { known: [], refusedSince: 0 })
  return records.flatMap(({ operator, egress, stored }) => {
    const { refusal } = stored.state
    if (refusal === null || refusal.until <= now || egressPool.names.includes(egress)) return []
    if (isDomainKey(operator)) return []
    const { at: since, until, answer } = refusal
    return [{ title: titleOf(operator), egress, since, until, answer }]
  })
}
