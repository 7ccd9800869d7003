import { shown } from '../../config/fields.ts'
import type { Config } from '../../config/settings.ts'
import { databaseUrl as checkUrl, Expected } from '../../config/values.ts'
import { isPostgresUrl } from '../../db/database.ts'
import { needsSecret } from '../../db/service-secret.ts'
import { migrate } from '../../maintenance/migrate.ts'
import { EvError } from '../../platform/error.ts'
import { type CliContext, inCwd } from '../context.ts'
import { fileOf, listsUrl } from '../database.ts'
import { readConfig } from '../settings.ts'
import { copyProgress } from './migrate-progress.ts'
import { migratedObject, migratedText, type Place } from './migrate-report.ts'

export type MigrateFlags = {
  readonly from?: string
  readonly to?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** `ev migrate`: gives the code to exit with. */
export async function migrateCommand(context: CliContext, flags: MigrateFlags): Promise<number> {
  const set = readConfig(context, flags)
  const to = flags.to ?? set.database
  if (!isPostgresUrl(checkedUrl(to))) throw noTarget(to)
  const dataDir = flags.from === undefined ? set.dataDir : inCwd(context, flags.from)
  const config = { ...set, dataDir }
  const fromUrl = listsUrl(flags.from === undefined ? set : { dataDir, database: '' })
  const { clock, random } = context
  const progress = copyProgress(context)
  const input = { from: fromUrl, to, place: config, onProgress: progress.show }
  const copied = await migrate({ clock, random }, input).finally(progress.end)
  const place: Place = { dataDir, file: fileOf(fromUrl), to, secret: secretOf(config) }
  context.stdout.write(
    flags.json
      ? `${JSON.stringify(migratedObject(copied, place), null, 2)}\n`
      : migratedText(copied, place),
  )
  return 0
}

/** Where the secret is that opens what was sealed; null: there is none, so nothing is sealed. */
function secretOf(config: Config): Place['secret'] {
  if (config.secret !== null) return 'EV_SECRET'
  return needsSecret(config) ? null : (config.secretFile ?? `${config.dataDir}/secret`)
}

function checkedUrl(given: string): string {
  try {
    return given === '' ? given : checkUrl(given)
  } catch (error) {
    if (!(error instanceof Expected)) throw error
    throw new EvError('usage', `--to is ${shown(given, true)}; it takes ${error.message}.`)
  }
}

const noTarget = (given: string) =>
  new EvError(
    'usage',
    `${given === '' ? 'There is no database to copy to' : 'What is copied to is a PostgreSQL database'}: name one that is empty with --to postgres://USER@HOST/NAME, or as EV_DATABASE in the environment, where its password is seen by nobody.`,
  )
