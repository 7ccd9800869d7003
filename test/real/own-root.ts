import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  type Daemon,
  ENVIRONMENT,
  installed,
  type ServerEnvironment,
  startDaemon,
} from './server.ts'

export type OwnRoot = {
  readonly env: ServerEnvironment
  /** Paths within the packages; the first program is started. */
  readonly programs: readonly [string, ...string[]]
  readonly args: readonly string[]
  readonly users: readonly string[]
  /** Files by their path in the chroot. */
  readonly files: Readonly<Record<string, string>>
}

/**
 * Starts a server in a chroot. It has the files that the server expects at fixed paths, its
 * resolv.conf names the DNS of the tests, and parallel test runs do not interfere.
 */
export function startInOwnRoot({ env, programs, args, users, files }: OwnRoot): Daemon {
  const root = rootOf(env)
  const [command] = programs
  for (const program of programs) copyProgram(root, installed(program))
  const all = {
    '/etc/resolv.conf': `nameserver ${env.nameServer}\n`,
    '/etc/hosts': '',
    '/etc/passwd': entries('passwd', [...users, 'root', 'nobody']),
    '/etc/group': entries('group', [...users, 'root', 'nogroup']),
    ...files,
  }
  for (const [path, text] of Object.entries(all)) writeInto(join(root, path), text)
  return startDaemon({
    name: 'daemon',
    dir: env.dir,
    command: '/usr/sbin/chroot',
    args: [root, installed(command), ...args],
    environment: { LD_LIBRARY_PATH },
  })
}

export const rootOf = ({ dir }: ServerEnvironment) => join(dir, 'root')

// Some packages have a library directly in usr/lib.
const LD_LIBRARY_PATH = `${ENVIRONMENT.LD_LIBRARY_PATH}:${installed('usr/lib')}`

/** Copies the program and its libraries to the same paths. */
function copyProgram(root: string, program: string) {
  const printed = execFileSync('ldd', [program], { encoding: 'utf8', env: { LD_LIBRARY_PATH } })
  const libraries = [...printed.matchAll(/(\/\S+) \(0x/g)].map(match => match[1] as string)
  for (const path of [program, ...libraries, '/bin/sh'].filter(existsSync)) {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    copyFileSync(path, join(root, path))
  }
}

function writeInto(file: string, text: string) {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

const entries = (database: 'passwd' | 'group', names: readonly string[]) =>
  execFileSync('getent', [database, ...names], { encoding: 'utf8' })
