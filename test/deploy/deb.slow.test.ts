import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { canUseDebian, type DebianRoot, unpackDebian } from '../support/debian-root.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { ROOT } from '../support/markdown.ts'

// Builds the Debian package, and installs, upgrades, removes and purges it in a minimal Debian. That
// has no systemd: units are enabled, and the service is started as its unit does.

/** Fast and large: the compression of a release takes minutes. */
const COMPRESSION = '-Zgzip -z1'

describe.runIf(canUseDebian('dpkg-deb', 'unshare'))('the Debian package', () => {
  const folder = emptyFolder()
  let debian: DebianRoot

  beforeAll(() => {
    expect(inject('buildFault')).toBe('')
    const built = sh(`EV_DEB_OPTIONS='${COMPRESSION}' bash tools/deb.sh ${folder}`, ROOT)
    const root = join(folder, 'root')
    mkdirSync(root)
    debian = unpackDebian(root)
    cpSync(built.trim(), join(root, 'old.deb'))
    sh(
      `dpkg-deb -R ${built.trim()} new && sed -i 's/^Version: .*/Version: 99.0.0/' new/DEBIAN/control`,
    )
    sh('dpkg-deb --root-owner-group -Znone --build new root/new.deb')
  })

  const sh = (command: string, cwd = folder): string => {
    const { status, stdout, stderr } = spawnSync('bash', ['-c', command], { cwd, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${command}: ${stderr}`)
    return stdout
  }
  const asUser = (command: string) => `setpriv --reuid ev --regid ev --init-groups -- ${command}`
  const read = (path: string) => readFileSync(join(debian.folder, path), 'utf8')

  /** Starts the service as its unit does, waits for its address, and stops it after `use`. */
  async function withService(use: (url: string) => Promise<void>): Promise<string> {
    const service = debian.start(`exec ${asUser('ev serve --port 0')}`)
    let printed = ''
    const url = await new Promise<string>((resolve, reject) => {
      const onText = (chunk: Buffer) => {
        printed += chunk
        const found = /listening on (http:\S+?)"/.exec(printed)?.[1]
        if (found !== undefined) resolve(found)
      }
      service.stdout?.on('data', onText)
      service.stderr?.on('data', onText)
      service.on('exit', () => reject(new Error(printed)))
    })
    try {
      await use(url)
    } finally {
      const ended = new Promise(resolve => service.on('exit', resolve))
      service.kill('SIGTERM')
      await ended
    }
    return printed
  }

  test('installs ev with its own Node, the units and the completion', () => {
    debian.run('dpkg -i /old.deb')
    expect(debian.attempt('command -v node').status).not.toBe(0)
    expect(debian.run('ev --version')).toBe(
      `${JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version}\n`,
    )
    expect(debian.run('ev verify --sandbox valid@example.com')).toContain('is deliverable')
    expect(debian.run('ls /etc/systemd/system/multi-user.target.wants')).toContain('ev.service')
    expect(read('usr/share/bash-completion/completions/ev')).toContain('complete')
  })

  test('makes a user, and a secret that only it can read', () => {
    expect(debian.run('stat -c "%a %U %G" /etc/ev/secret /etc/ev/config.json /var/lib/ev')).toBe(
      '640 root ev\n640 root ev\n700 ev ev\n',
    )
    expect(Buffer.from(read('etc/ev/secret'), 'base64')).toHaveLength(32)
  })

  test('has a service with the settings of /etc/ev, whose data its user manages', async () => {
    const printed = await withService(async url => {
      expect((await fetch(`${url}/livez`)).status).toBe(200)
      expect(debian.run(asUser('ev keys list'))).toMatch(/ev_live_/)
    })
    expect(printed).toMatch(/ev_live_\w+/)
    expect(debian.run('stat -c %U /var/lib/ev/ev.sqlite')).toBe('ev\n')
    expect(debian.attempt('ls /var/lib/ev/secret').status).not.toBe(0)
  })

  test('keeps settings, secret, data and user in an upgrade', async () => {
    const secret = read('etc/ev/secret')
    const settings = { ...JSON.parse(read('etc/ev/config.json')), helo: 'probe.example.com' }
    writeFileSync(join(debian.folder, 'etc/ev/config.json'), JSON.stringify(settings))
    const keys = debian.run(asUser('ev keys list'))
    debian.run('dpkg -i /new.deb')
    expect(debian.run('dpkg-query -W')).toContain('evmail\t99.0.0\n')
    expect(read('etc/ev/secret')).toBe(secret)
    expect(JSON.parse(read('etc/ev/config.json')).helo).toBe('probe.example.com')
    expect(debian.run(asUser('ev keys list'))).toBe(keys)
    expect(await withService(async () => {})).not.toMatch(/ev_live_\w+/)
  })

  test('keeps the data when it is removed, and deletes them when it is purged', () => {
    debian.run('dpkg -r evmail')
    expect(debian.attempt('command -v ev').status).not.toBe(0)
    debian.run(
      'test -e /usr/lib/ev && exit 1; test -s /etc/ev/secret && test -s /var/lib/ev/ev.sqlite',
    )
    debian.run('dpkg -P evmail')
    debian.run(
      'test ! -e /etc/ev && test ! -e /var/lib/ev && ! getent passwd ev && ! getent group ev',
    )
    const left = debian.run('find / -xdev -path /proc -prune -o -name "*ev.service*" -print')
    expect(left).toBe('')
  })
})
