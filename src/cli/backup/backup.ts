import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { EvError, messageOf } from '../../base/error.ts'
import type { Config } from '../../config/settings.ts'
import { contentsOf, copyFile } from '../../store/care/backup.ts'
import { lookAtDatabase } from '../../store/care/look.ts'
import { type CliContext, inCwd } from '../context.ts'
import { databaseUrl, fileOf, isShared } from '../database.ts'
import { readConfig } from '../settings/settings.ts'
import { useDump } from './dump.ts'
import { backupObject, backupText } from './report.ts'

export type BackupFlags = {
  readonly force?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** `ev backup`: gives the code to exit with. */
export function backupCommand(context: CliContext, target: string, flags: BackupFlags): number {
  const config = readConfig(context, flags)
  if (isShared(config)) throw useDump(target, config)
  const file = resolve(inCwd(context, target))
  refuseUnusable(config)
  refuseTaken(file, config, flags.force ?? false)
  const partial = `${file}.partial`
  try {
    makeEmpty(partial)
    copyFile(databaseUrl(config), partial)
    sync(partial)
    const contents = contentsOf(partial)
    place(partial, file, flags.force ?? false)
    sync(dirname(file))
    const secretFile = config.secretFile ?? join(config.dataDir, 'secret')
    const backup = {
      ...{ file, bytes: statSync(file).size, contents, database: fileOf(databaseUrl(config)) },
      secretFile: config.secret === null && existsSync(secretFile) ? secretFile : null,
    }
    const shown = flags.json
      ? `${JSON.stringify(backupObject(backup), null, 2)}\n`
      : backupText(backup)
    context.stdout.write(shown)
    return 0
  } catch (error) {
    rmSync(partial, { force: true })
    throw error instanceof EvError ? error : cannotWrite(file, error)
  }
}

function refuseUnusable(config: Config): void {
  const look = lookAtDatabase(databaseUrl(config))
  if (look.kind === 'absent') {
    throw new EvError(
      'no_input',
      `There is no database ${look.file} yet, so there is nothing to back up. If it is elsewhere, name the place with --data-dir.`,
    )
  }
  if (look.kind === 'unusable') {
    throw new EvError('io', `The database ${look.file} cannot be copied: ${look.why}.`)
  }
}

function refuseTaken(file: string, config: Config, force: boolean): void {
  if (!existsSync(file)) return
  if (realpathSync(file) === realpathSync(fileOf(databaseUrl(config)))) {
    throw new EvError('usage', `${file} is the database itself. Name another file for the copy.`)
  }
  if (!force) throw isTaken(file)
}

/** For nobody else to read: there are addresses in it. */
function makeEmpty(file: string): void {
  rmSync(file, { force: true })
  closeSync(openSync(file, 'wx', 0o600))
}

function sync(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Gives the copy its name at once, and takes no other file's, not even one that was made just now. */
function place(partial: string, file: string, force: boolean): void {
  if (force) {
    renameSync(partial, file)
    return
  }
  try {
    linkSync(partial, file)
    rmSync(partial)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EEXIST' || existsSync(file)) throw isTaken(file)
    // Some file systems know no second name for a file.
    renameSync(partial, file)
  }
}

const isTaken = (file: string) =>
  new EvError(
    'cannot_write',
    `${file} is there already. Name another file, or replace it with --force.`,
  )

const cannotWrite = (file: string, cause: unknown) =>
  new EvError(
    'cannot_write',
    `The database cannot be copied to ${file}: ${messageOf(cause)}. Look whether the folder is there, may be written and has room.`,
    { cause },
  )
