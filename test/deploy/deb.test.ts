import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { SETTINGS } from '../../src/config/settings.ts'
import { ROOT, readDoc } from '../support/markdown.ts'

const analyze = (...args: string[]) =>
  spawnSync('systemd-analyze', args, { encoding: 'utf8', timeout: 60_000 })
const hasSystemd = analyze('--version').status === 0

test('the settings of the Debian package exist', () => {
  const flags = SETTINGS.map(({ flag }) => flag)
  const names = Object.keys(JSON.parse(readDoc('deploy/deb/config.json')))
  expect(names.filter(name => !flags.includes(`--${name}`))).toEqual([])
})

test.each(['ev', 'postinst', 'prerm', 'postrm'])('deploy/deb/%s is a script of sh', name => {
  const { stderr } = spawnSync('sh', ['-n', join(ROOT, 'deploy/deb', name)], { encoding: 'utf8' })
  expect(stderr).toBe('')
})

describe.each(['ev', 'ev-worker', 'ev-backup'])('%s.service of the Debian package', name => {
  const unit = readDoc(`deploy/${name}.service`)
  const changes = readDoc(`deploy/deb/${name}.service.conf`)

  test('runs the program of the package as its user', () => {
    expect(changes).not.toContain('/usr/local')
    expect(changes).toMatch(/^DynamicUser=no\nUser=ev$/m)
    // What the package replaces is reset first.
    for (const [directive] of changes.matchAll(/^(ExecStart|LoadCredential|EnvironmentFile)=$/gm)) {
      expect(unit).toContain(directive)
    }
  })

  test.runIf(hasSystemd)('is accepted by systemd', () => {
    const folder = mkdtempSync(join(tmpdir(), 'ev-unit-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    mkdirSync(join(folder, `${name}.service.d`))
    // systemd checks that the program exists.
    const withProgram = (text: string) =>
      text.replaceAll(/\/usr\/(local\/)?bin\/ev/g, process.execPath)
    writeFileSync(join(folder, `${name}.service`), withProgram(unit))
    writeFileSync(join(folder, `${name}.service.d/package.conf`), withProgram(changes))
    const { status, stderr } = analyze('verify', join(folder, `${name}.service`))
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })
})
