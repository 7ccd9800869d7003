import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { EvError } from '../../base/error.ts'
import { lookAtDatabase } from '../../store/care/look.ts'
import { isLocked, type Lock, lockJob, SERVE_LOCK } from '../../store/lock.ts'

/** Keeps services off a data directory. Throws where there is nothing to copy, or somebody is at work on it. */
export function lockSource(dataDir: string, url: string): Lock {
  const look = lookAtDatabase(url)
  if (look.kind === 'absent') {
    throw new EvError(
      'no_input',
      `There is no database ${look.file}, so there is nothing to copy. Name the data directory of “ev serve” with --from.`,
    )
  }
  if (look.kind === 'unusable') {
    throw new EvError('io', `The database ${look.file} cannot be copied: ${look.why}.`)
  }
  if (look.kind === 'newer') {
    throw new EvError(
      'io',
      `The database ${look.file} was written by a newer version of ev: use that version.`,
    )
  }
  const lock = lockJob(dataDir, SERVE_LOCK)
  if (lock === null) throw atWork(dataDir, '“ev serve”')
  if (listsAtWork(dataDir)) {
    lock.release()
    throw atWork(dataDir, '“ev bulk”')
  }
  return lock
}

function listsAtWork(dataDir: string): boolean {
  const locks = join(dataDir, 'locks')
  const names = existsSync(locks) ? readdirSync(locks) : []
  return names
    .filter(name => /^list_.+\.lock$/.test(name))
    .some(name => isLocked(dataDir, name.replace(/\.lock$/, '')))
}

const atWork = (dataDir: string, who: string) =>
  new EvError(
    'io',
    `An ${who} is at work in ${dataDir}, and what it does meanwhile would be lost. Stop it first: it goes on later where it was.`,
  )
