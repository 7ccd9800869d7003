import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { backup } from '../../maintenance/backup.ts'
import { type CliContext, inCwd } from '../context.ts'
import { databaseUrl, isShared } from '../database.ts'
import { readConfig } from '../settings.ts'
import { backupObject, backupText } from './backup-report.ts'
import { pgDumpHint } from './database-dump.ts'

export type BackupFlags = {
  readonly force?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** `ev backup`: gives the code to exit with. */
export function backupCommand(context: CliContext, target: string, flags: BackupFlags): number {
  const config = readConfig(context, flags)
  if (isShared(config)) throw pgDumpHint(target, config)
  const file = resolve(inCwd(context, target))
  const input = { databaseUrl: databaseUrl(config), file, force: flags.force ?? false }
  const copy = backup(input)
  const secretFile = config.secretFile ?? join(config.dataDir, 'secret')
  const isInFile = config.secret === null && existsSync(secretFile)
  const shown = { ...copy, secretFile: isInFile ? secretFile : null }
  context.stdout.write(
    flags.json ? `${JSON.stringify(backupObject(shown), null, 2)}\n` : backupText(shown),
  )
  return 0
}
