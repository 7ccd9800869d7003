import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { canUseDebian } from '../support/debian-root.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { freePort } from '../support/free-port.ts'
import { jsonArguments, lastArguments, readStages } from '../support/image.ts'
import { ROOT, readDoc } from '../support/markdown.ts'

// Builds the image by buildah, on a Debian of its own in place of the images of Docker Hub, and runs
// it in chroot: with the network and the processes of this machine.

type Locked = { readonly version: string; readonly integrity: string }
type Lock = { readonly packages: Readonly<Record<string, Locked>> }
type Config = Readonly<Record<'Entrypoint' | 'Cmd', string[]>> & {
  readonly StopSignal: string
  readonly User: string
  readonly Healthcheck: { readonly Test: string[] }
}

const LAST = readStages(readDoc('deploy/Dockerfile')).at(-1) as ReturnType<
  typeof readStages
>[number]

/** Starts the service, waits until it is healthy, lists the keys, and stops it as Docker does. */
const SERVE = `
  ev serve > /data/log 2>&1 & pid=$!
  until node /ev/deploy/healthcheck.mjs; do
    kill -0 $pid || { cat /data/log; exit 1; }
    sleep 0.1
  done
  echo "user $(id -u)"
  ev keys list
  kill -TERM $pid
  wait $pid
  echo "exit $?"`

const SERVED = /^user 1000\n(?:.*\n)*.*ev_live_.*\nexit 0$/

describe.runIf(canUseDebian('buildah', 'unshare'))('the image', () => {
  const home = emptyFolder()
  const storage = join(home, 'storage')
  const [data, upgraded] = [join(home, 'volume'), 'ev:99.0.0']
  let image = ''
  let root = ''

  const run = (program: string, args: readonly string[], env = {}): string => {
    const options = { encoding: 'utf8', cwd: ROOT, env: { ...process.env, ...env } } as const
    const { status, stdout, stderr } = spawnSync(program, args, options)
    if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stdout}${stderr}`)
    return stdout.trim()
  }
  const buildah = (...args: readonly string[]) =>
    run('buildah', ['--root', storage, '--runroot', join(home, 'run'), ...args])
  const mountOf = (name: string) => buildah('mount', buildah('from', '--pull-never', name))

  beforeAll(() => {
    image = run('bash', ['tools/image.sh'], { EV_IMAGE_STORAGE: storage })
    root = mountOf(image)
    mkdirSync(data, { mode: 0o700 })
    chownSync(data, 1_000, 1_000)
  })
  afterAll(() => {
    // Its mounts must be gone before its folder is deleted.
    if (existsSync(storage)) buildah('rm', '--all')
  })

  /** Runs a shell command in a root that cannot be written, with a volume at /data. */
  async function runReadOnly(folder: string, command: string): Promise<string> {
    const mounts = [
      'cd "$0" && mount --bind . . && cd "$0" && mount -o remount,bind,ro .',
      'mount -t tmpfs tmpfs tmp && mount --bind "$1" data',
      'mount --rbind /dev dev && mount -t proc proc proc',
    ]
    const env = `env -i PATH=/usr/local/bin:/usr/bin:/bin EV_DATA_DIR=/data EV_LISTEN=127.0.0.1:${await freePort()}`
    const chroot = `exec chroot --userspec=1000:1000 . ${env} sh -c "$2"`
    const script = [...mounts, chroot].join(' && ')
    return run('unshare', ['--mount', 'sh', '-c', script, folder, data, command])
  }

  test('has the command, the user and the health check of the Dockerfile', () => {
    const { Docker } = JSON.parse(buildah('inspect', '--type', 'image', image)) as {
      Docker: { config: Config }
    }
    expect(Docker.config).toMatchObject({
      Entrypoint: jsonArguments(LAST, 'ENTRYPOINT'),
      Cmd: jsonArguments(LAST, 'CMD'),
      User: lastArguments(LAST, 'USER'),
      StopSignal: lastArguments(LAST, 'STOPSIGNAL'),
    })
    expect(Docker.config.Healthcheck.Test.slice(1)).toEqual(jsonArguments(LAST, 'HEALTHCHECK'))
  })

  test('contains evmail with the locked versions of its dependencies, and no npm', () => {
    const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Lock
    const { packages } = read(join(root, 'ev/node_modules/.package-lock.json'))
    const { packages: locked } = read(join(ROOT, 'package-lock.json'))
    const own = ['evmail', 'evmail-client', 'evmail-engine'].map(name => `node_modules/${name}`)
    const others = Object.entries(packages).filter(([path]) => !own.includes(path))
    expect(others.length).toBeGreaterThan(30)
    for (const [path, { version, integrity }] of others) {
      const { version: lockedVersion, integrity: lockedIntegrity } = locked[path] as Locked
      expect([path, version, integrity]).toEqual([path, lockedVersion, lockedIntegrity])
    }
    const absent = ['usr/local/bin/npm', 'usr/local/lib/node_modules', 'ev/src', 'ev/packages']
    expect(absent.filter(path => existsSync(join(root, path)))).toEqual([])
  })

  test('serves as its user, and ends at the stop signal', async () => {
    const container = buildah('from', '--pull-never', image)
    const listen = ['--env', `EV_LISTEN=127.0.0.1:${await freePort()}`]
    const user = ['--isolation', 'chroot', '--user', '1000:1000']
    const printed = buildah('run', ...user, ...listen, container, '--', 'sh', '-c', SERVE)
    expect(printed).toMatch(SERVED)
  })

  test('needs only /data and /tmp to be writable, and a newer image continues with the data', async () => {
    const first = await runReadOnly(root, `! touch /ev/file 2> /dev/null && ${SERVE.trim()}`)
    expect(first).toMatch(SERVED)
    const container = buildah('from', '--pull-never', image)
    const manifest = '/ev/node_modules/evmail/package.json'
    const edit = ['sed', '-i', 's/"version": ".*"/"version": "99.0.0"/', manifest]
    buildah('run', '--isolation', 'chroot', '--user', '0', container, '--', ...edit)
    buildah('commit', '--quiet', container, upgraded)
    expect(await runReadOnly(mountOf(upgraded), SERVE)).toBe(first)
  })
})
