import { liveMembers, type Member } from '../../cluster/members.ts'
import { DEFAULT_CLUSTER_TIMINGS } from '../../cluster/membership.ts'
import type { MemberRole } from '../../cluster/tables.ts'
import type { Database } from '../../db/database.ts'
import { isLocked, SERVE_LOCK } from '../../db/file-lock.ts'

/**
 * Whether an `ev serve` is at work on a database: for a file, in its data directory; on a server, anywhere. There each
 * `ev worker` is at work on jobs too.
 */
export async function isServed(
  database: Database,
  { dataDir }: { readonly dataDir: string },
  roles: readonly MemberRole[] = ['serve', 'worker'],
): Promise<boolean> {
  if (database.dialect === 'sqlite') return isLocked(dataDir, SERVE_LOCK)
  return (await activeMembers(database)).some(({ role }) => roles.includes(role))
}

/** Those that were heard of lately. */
export async function activeMembers(database: Database): Promise<Member[]> {
  return (await liveMembers(database)).filter(
    ({ quietMs }) => quietMs < DEFAULT_CLUSTER_TIMINGS.deadMs,
  )
}
