import { isDomainKey } from '../../probe/lane/domain-refusals.ts'
import { lookAtPaces } from '../../store/cluster/pace/rows.ts'
import type { Database } from '../../store/database.ts'
import type { OperatorsParts } from './operator/operators.ts'
import type { RefusalElsewhere } from './source.ts'

/** Operators that refuse egresses by which this process does not ask; those of other processes, which have no page. */
export async function refusalsElsewhere(
  database: Database,
  { fleet, titleOf }: Pick<OperatorsParts, 'fleet' | 'titleOf'>,
): Promise<readonly RefusalElsewhere[]> {
  if (database.dialect === 'sqlite') return []
  const { now, records } = await lookAtPaces(database, { known: [], refusedSince: 0 })
  return records.flatMap(({ operator, egress, stored }) => {
    const { refusal } = stored.state
    if (refusal === null || refusal.until <= now || fleet.names.includes(egress)) return []
    if (isDomainKey(operator)) return []
    const { at: since, until, answer } = refusal
    return [{ title: titleOf(operator), egress, since, until, answer }]
  })
}
