import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Daemon, ENVIRONMENT, installed, type Place, startDaemon } from './server.ts'

export type OwnRoot = {
  readonly place: Place
  /** Within the packages. The first is what runs. */
  readonly programs: readonly [string, ...string[]]
  readonly args: readonly string[]
  readonly users: readonly string[]
  /** Files by their path there. */
  readonly files: Readonly<Record<string, string>>
}

/**
 * Starts a server for which one folder is the whole world (chroot). There the files stand that it looks for at
 * fixed paths, its resolv.conf names our DNS, and a second run of the tests is not in its way.
 */
export function startInOwnRoot({ place, programs, args, users, files }: OwnRoot): Daemon {
  const root = rootOf(place)
  const [command] = programs
  for (const program of programs) copyProgram(root, installed(program))
  const all = {
    '/etc/resolv.conf': `nameserver ${place.nameServer}\n`,
    '/etc/hosts': '',
    '/etc/passwd': entries('passwd', [...users, 'root', 'nobody']),
    '/etc/group': entries('group', [...users, 'root', 'nogroup']),
    ...files,
  }
  for (const [path, text] of Object.entries(all)) writeInto(join(root, path), text)
  return startDaemon({
    name: 'daemon',
    dir: place.dir,
    command: '/usr/sbin/chroot',
    args: [root, installed(command), ...args],
    environment: { LD_LIBRARY_PATH },
  })
}

export const rootOf = ({ dir }: Place) => join(dir, 'root')

// Some packages keep a library right there.
const LD_LIBRARY_PATH = `${ENVIRONMENT.LD_LIBRARY_PATH}:${installed('usr/lib')}`

/** The program and the libraries it loads, each at its own path. */
function copyProgram(root: string, program: string) {
  const told = execFileSync('ldd', [program], { encoding: 'utf8', env: { LD_LIBRARY_PATH } })
  const libraries = [...told.matchAll(/(\/\S+) \(0x/g)].map(match => match[1] as string)
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
