import { activeMembers } from '../../cluster/membership.ts'
import type { MemberRole } from '../../cluster/tables.ts'
import type { Database } from '../../db/database.ts'
import { isLocked, SERVE_LOCK } from '../../db/file-lock.ts'

/**
 * Whether a service is running on a database: for SQLite, in the data directory; for PostgreSQL, on
 * any machine. With PostgreSQL, `ev worker` processes jobs too.
 */
export async function isServed(
  database: Database,
  { dataDir }: { readonly dataDir: string },
  roles: readonly MemberRole[] = ['serve', 'worker'],
): Promise<boolean> {
  if (database.dialect === 'sqlite') return isLocked(dataDir, SERVE_LOCK)
  return (await activeMembers(database)).some(({ role }) => roles.includes(role))
}
