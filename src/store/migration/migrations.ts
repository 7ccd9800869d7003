import type { Kysely } from 'kysely'
import { lists } from './0001-lists.ts'
import { egresses } from './0002-egresses.ts'
import { service } from './0003-service.ts'
import { deliveries } from './0004-deliveries.ts'
import { sessions } from './0005-sessions.ts'
import { cluster } from './0006-cluster.ts'
import { retries } from './0007-retries.ts'
import { storedRows } from './0008-stored-rows.ts'

type Migrations = Record<string, { up(db: Kysely<unknown>): Promise<void> }>

/** Forward only: a released one is never changed, a new one is added. */
export const MIGRATIONS: Migrations = {
  '0001_lists': { up: lists },
  '0002_egresses': { up: egresses },
  '0003_service': { up: service },
  '0004_deliveries': { up: deliveries },
  '0005_sessions': { up: sessions },
  '0006_cluster': { up: cluster },
  '0007_retries': { up: retries },
  '0008_stored_rows': { up: storedRows },
}
