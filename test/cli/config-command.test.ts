import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fileKey } from '../../src/config/config.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { emptyFolder, runEv } from '../support/cli.ts'

/** Options of `ev serve` that are not settings: they say how the others are read and shown. */
const OTHER_OPTIONS = ['config', 'debug', 'help', 'help-all', 'quiet', 'verbose']

type Options = { file?: unknown; environment?: Record<string, string> }

function run(args: readonly string[], { file, environment = {} }: Options = {}) {
  const home = emptyFolder()
  if (file !== undefined) writeFileSync(join(home, 'ev.config.json'), JSON.stringify(file))
  return runEv(['config', ...args], { home, environment, offline: true })
}

const json = async (args: readonly string[], options: Options = {}) =>
  JSON.parse((await run(['--json', ...args], options)).stdout)

describe.concurrent('ev config', () => {
  test('shows every setting, in the order of the help', async () => {
    const { code, stdout, stderr } = await run([])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const keys = SETTINGS.map(fileKey)
    const [, rest = ''] =
      /^No config file\.\n\nSETTING +VALUE +FROM\n([\s\S]*?)\n\n/.exec(stdout) ?? []
    expect(rest.split('\n').map(line => line.split(' ')[0])).toEqual(keys)
    expect(Object.keys((await json([])).settings)).toEqual(keys)
  })

  test('each option of "ev serve" has one name as a flag, in the environment and in the file', async () => {
    const { stdout } = await runEv(['serve', '--help-all'], { home: emptyFolder() })
    const flags = [...stdout.matchAll(/^ {2}(?:-\w, )?--([a-z-]+)/gm)].map(([, name]) => name)
    const keys = Object.keys((await json([])).settings)
    const isSecret = (key: string) =>
      ['gravatar-key', 'metrics-token', 'oidc-client-secret', 'secret'].includes(key)
    expect([...flags].sort()).toEqual(
      [...OTHER_OPTIONS, ...keys.filter(key => !isSecret(key))].sort(),
    )
    const variables = keys.map(key => `EV_${key.toUpperCase().replaceAll('-', '_')}`)
    expect(SETTINGS.map(one => one.environment)).toEqual(variables)
  })

  test('shows where the parts of the listen address come from', async () => {
    const environment = { EV_PORT: '3000' }
    const { settings } = await json(['--host', 'localhost'], { environment })
    expect(settings).toMatchObject({
      listen: { value: 'localhost:3000', from: 'default, --host, EV_PORT' },
      host: { value: 'localhost', from: '--host' },
      port: { value: 3000, from: 'EV_PORT' },
    })
  })

  test('ignores the variables that Kubernetes and Docker set for a service named ev, and names them', async () => {
    const environment = {
      EV_PORT: 'tcp://10.0.0.1:8080',
      EV_SERVICE_HOST: '10.0.0.1',
      EV_SERVICE_PORT: '8080',
      EV_SERVICE_PORT_HTTP: '8080',
      EV_PORT_8080_TCP: 'tcp://10.0.0.1:8080',
      EV_PORT_8080_TCP_PROTO: 'tcp',
      EV_PORT_8080_TCP_PORT: '8080',
      EV_PORT_8080_TCP_ADDR: '10.0.0.1',
      EV_WORKER_SERVICE_HOST: '10.0.0.2',
      EV_SMTP_PORT: 'tcp://10.0.0.3:25',
      EV_SMTP_PORT_25_TCP_ADDR: '10.0.0.3',
      EV_NAME: '/web/ev',
      EV_ENV_PATH: '/usr/bin',
    }
    const { settings, ignored } = await json([], { environment })
    expect(ignored).toEqual(Object.keys(environment).sort())
    expect(settings).toMatchObject({
      listen: { value: '127.0.0.1:8080', from: 'default' },
      'smtp-port': { value: 25, from: 'default' },
    })
    const { stdout } = await run([], { environment: { EV_PORT: 'tcp://10.0.0.1:8080' } })
    expect(stdout).toMatch(/\nIgnored, .* for a service named "ev": EV_PORT\n$/)
  })

  test('shows the source of each: a flag wins over the environment, the environment over the file', async () => {
    const file = { helo: 'file.example.com', 'smtp-port': 26, concurrency: 7 }
    const environment = { EV_HELO: 'env.example.com', EV_SMTP_PORT: '27' }
    const { settings, ...rest } = await json(['--helo', 'flag.example.com'], { file, environment })
    expect(rest).toMatchObject({ file: 'ev.config.json' })
    expect(settings).toMatchObject({
      helo: { value: 'flag.example.com', from: '--helo' },
      'smtp-port': { value: 27, from: 'EV_SMTP_PORT' },
      concurrency: { value: 7, from: 'ev.config.json' },
      cache: { value: true, from: 'default' },
    })
    const { stdout } = await run(['--helo', 'flag.example.com'], { file, environment })
    expect(stdout).toMatch(/^Config file: ev\.config\.json\n/)
    expect(stdout).toMatch(/^helo +flag\.example\.com +--helo$/m)
    expect(stdout).toMatch(/^smtp-port +27 +EV_SMTP_PORT$/m)
    expect(stdout).toMatch(/^concurrency +7 +ev\.config\.json$/m)
    expect(stdout).toMatch(/^cache +on +default$/m)
    expect(stdout).toMatch(/^deadline +– +default$/m)
  })

  test('shows values in the units of the settings, and the actual data directory', async () => {
    const { settings } = await json([
      ...['--greylist-delay', '90', '--keep-results', '7', '--dns', '192.0.2.1,192.0.2.2'],
      ...['--data-dir', 'here'],
    ])
    expect(settings).toMatchObject({
      'greylist-delay': { value: 90 },
      'keep-results': { value: 7 },
      dns: { value: ['192.0.2.1', '192.0.2.2'] },
      'mail-from': { value: '<>', from: 'default' },
      database: { value: 'sqlite:here/ev.sqlite', from: 'default' },
    })
  })

  test('prints JSON that is valid in a config file with the same meaning', async () => {
    const first = await json(['--helo', 'probe.example.com', '--greylist-delay', '90'])
    const entries = Object.entries<{ value: unknown }>(first.settings)
    const set = entries.filter(([, { value }]) => value !== null && `${value}` !== '')
    const file = {
      ...Object.fromEntries(set.map(([key, { value }]) => [key, value])),
      egresses: first.egresses,
      operators: first.operators,
    }
    const second = await json([], { file })
    const valuesOf = ({ settings }: typeof first) =>
      Object.entries<{ value: unknown }>(settings).map(([key, { value }]) => [key, value])
    expect(valuesOf(second)).toEqual(valuesOf(first))
    expect(second.egresses).toEqual(first.egresses)
  })

  test('shows the egresses and operators of the config file', async () => {
    const file = {
      helo: 'probe.example.com',
      egresses: [{ name: 'a', 'source-address': '192.0.2.1' }, { name: 'b' }],
      operators: { 'big.example': { hosts: ['mx.big.example'], 'sessions-per-operator': 2 } },
    }
    expect(await json([], { file })).toMatchObject({
      egresses: [
        { name: 'a', helo: 'probe.example.com', 'source-address': '192.0.2.1' },
        { name: 'b', helo: 'probe.example.com' },
      ],
      operators: { 'big.example': { hosts: ['mx.big.example'], 'sessions-per-operator': 2 } },
    })
    const { stdout } = await run([], { file })
    expect(stdout).toMatch(
      /^EGRESS\na .*source-address 192\.0\.2\.1.*\nb .*helo probe\.example\.com/m,
    )
    expect(stdout).toMatch(/^OPERATOR\nbig\.example .*sessions-per-operator 2/m)
  })

  test('hides passwords from every source', async () => {
    const proxy = 'socks5://ann:se@cr/et@proxy.example.com:1080'
    const file = { egresses: [{ name: 'a', proxy: proxy.replace('cr/et', 'cret') }, { name: 'b' }] }
    for (const args of [[], ['--json']]) {
      const environment = { EV_PROXY: proxy.replace('cr/et', 'cret') }
      const { code, stdout, stderr } = await run(args, { file, environment })
      expect(code, stderr).toBe(0)
      expect(stdout).not.toMatch(/se@|cret@|ann/)
      expect(stdout.match(/socks5:\/\/…@proxy\.example\.com:1080/g)).toHaveLength(3)
    }
  })

  test('shows the mail server without its password, which is rejected as a flag', async () => {
    const url = 'smtps://ann:s3cr%23t@mail.example.com:465'
    const environment = { EV_NOTIFY_SMTP: url, EV_NOTIFY_FROM: 'ev@example.com' }
    const { code, stdout } = await run([], { environment })
    expect(code).toBe(0)
    expect(stdout).toMatch(/^notify-smtp +smtps:\/\/…@mail\.example\.com:465 +EV_NOTIFY_SMTP$/m)
    expect(stdout).not.toMatch(/ann|s3cr/)
    const { settings } = await json([], { file: { 'notify-smtp': url } })
    expect(settings['notify-smtp'].value).toBe('smtps://…@mail.example.com:465')
    const asFlag = await run(['--notify-smtp', url])
    expect(asFlag).toMatchObject({ code: 64, stdout: '' })
    expect(asFlag.stderr).toMatch(/^error: --notify-smtp would show a secret/)
    expect(asFlag.stderr).not.toMatch(/ann|s3cr/)
  })

  test('hides secrets', async () => {
    const environment = { EV_SECRET: 'not-to-be-seen-01', EV_METRICS_TOKEN: 'not-to-be-seen-02' }
    expect((await run([], { environment })).stdout).toMatch(/^metrics-token +… +EV_METRICS_TOKEN$/m)
    const { stdout } = await run(['--json'], { environment })
    expect(stdout).not.toContain('not-to-be-seen')
    expect(JSON.parse(stdout).settings.secret).toEqual({ value: '…', from: 'EV_SECRET' })
  })

  test('shows plans and limits in the format of the config file', async () => {
    const file = {
      plans: { team: { requests: 20, per: 'second', 'credits-per-day': null, 'stored-rows': 9 } },
      'ip-limits': { 'bulk-per-hour': 5 },
    }
    expect(await json([], { file })).toMatchObject(file)
    const { stdout } = await run([], { file })
    expect(stdout).toMatch(
      /^PLAN\nteam +requests 20, stored-rows 9, per second, credits-per-day –$/m,
    )
    expect(stdout).toMatch(/^LIMITS PER IP ADDRESS\nbulk-per-hour 5$/m)
  })

  test('rejects invalid settings as every command does', async () => {
    const ran = await run([], { environment: { EV_SMTP_PORT: 'x' } })
    expect(ran).toMatchObject({ code: 78, stdout: '' })
    expect(ran.stderr).toMatch(/^error: EV_SMTP_PORT is "x"; it takes/)
  })
})
