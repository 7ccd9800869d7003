import { type ChildProcess, type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { REQUIRED } from './real-servers.ts'

/** What `tools/install-container-tools.sh` makes. */
const TAR = process.env.EV_DEBIAN_ROOT ?? '/opt/ev-debian-root.tar'

const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0

/** Whether the tests that need these programs and a Debian root run: as root, and always in CI. */
export const canUseDebian = (...programs: readonly string[]): boolean =>
  REQUIRED || (process.getuid?.() === 0 && existsSync(TAR) && programs.every(has))

export type DebianRoot = {
  readonly folder: string
  /** Runs a shell command in the root and returns its output. Throws if it fails. */
  run(command: string): string
  /** The same for a command that may fail. */
  attempt(command: string): SpawnSyncReturns<string>
  /** Starts a command that begins with `exec`: signals to the child reach its program. */
  start(command: string): ChildProcess
}

/**
 * Unpacks a minimal Debian into an empty folder. Its commands have the network of this machine, and
 * mounts of their own, which end with them: the folder itself never has any.
 */
export function unpackDebian(folder: string): DebianRoot {
  const unpacked = spawnSync('tar', ['-xf', TAR, '-C', folder], { encoding: 'utf8' })
  if (unpacked.status !== 0) throw new Error(`tar: ${unpacked.stderr}`)
  for (const name of ['dev', 'proc']) mkdirSync(join(folder, name), { recursive: true })
  const mounts = 'mount --rbind /dev dev && mount -t proc proc proc'
  const args = (command: string) => [
    ...['--mount', 'sh', '-c', `cd "$0" && ${mounts} && exec chroot . sh -c "$1"`],
    ...[folder, command],
  ]
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root', LANG: 'C.UTF-8' }
  const attempt = (command: string) =>
    spawnSync('unshare', args(command), { encoding: 'utf8', env })
  return {
    folder,
    attempt,
    run(command) {
      const { status, stdout, stderr } = attempt(command)
      if (status !== 0) throw new Error(`${command}: ${stdout}${stderr}`)
      return stdout
    },
    start: command => spawn('unshare', args(command), { env }),
  }
}
