import { expect, test } from 'vitest'
import { composeDoctor } from '../../src/compose/doctor.ts'
import { toConfig } from '../../src/config/config.ts'
import { referenceMxHosts } from '../../src/doctor/network/reference-hosts.ts'
import { plainIp } from '../../src/platform/ip.ts'
import { scriptedMx } from '../support/mx.ts'
import { CLIENT, startOidcProvider } from '../support/oidc-provider.ts'
import { zone } from '../support/zone.ts'

const PARTS = { databaseUrl: 'sqlite:/nowhere/ev.sqlite', exchangers: null }

const configOf = (smtpPort: string) =>
  toConfig({ flags: { smtpPort }, environment: {}, file: null })

const isAddress = (host: string) => plainIp(host) !== null

test('reference hosts are used only for port 25; other ports use hosts from DNS', () => {
  const called = (port: string) =>
    composeDoctor(configOf(port), PARTS, { resolver: zone({}) }).exchangers
  expect(called('25').filter(isAddress)).toHaveLength(2)
  expect(called('2525').filter(isAddress)).toEqual([])
  expect(called('2525')).toEqual(referenceMxHosts(25).filter(host => !isAddress(host)))
})

test('the doctor uses injected dependencies, for all DNS servers too', async () => {
  const resolver = zone({})
  const dial = scriptedMx({})
  const doctorDeps = composeDoctor(configOf('2525'), PARTS, { resolver, dial })
  await doctorDeps.resolver.resolve('a.test', 'A')
  await doctorDeps.dnsServers[0]?.resolver.resolve('b.test', 'A')
  expect(resolver.asked).toEqual(['A a.test', 'A b.test'])
  expect(doctorDeps.dnsServers).toHaveLength(1)
  expect(doctorDeps.egresses.map(egress => egress.dial)).toEqual([dial])
  doctorDeps.close()
})

test('a dial factory is called with the egress', () => {
  const names: string[] = []
  const dial = scriptedMx({})
  composeDoctor(configOf('2525'), PARTS, {
    resolver: zone({}),
    dial: ({ name }) => {
      names.push(name)
      return dial
    },
  })
  expect(names).toEqual(['default'])
})

test('the identity provider of the settings is checked, and its secret is not shown', async () => {
  const { issuer } = await startOidcProvider('https://ev.example.com/sign-in/oidc/callback')
  const check = async (values: Readonly<Record<string, unknown>>) => {
    const file = { path: 'ev.config.json', values }
    const { identityProvider, close } = composeDoctor(
      toConfig({ flags: {}, environment: {}, file }),
      PARTS,
    )
    const outcome = identityProvider && {
      ...identityProvider,
      why: await identityProvider.check(),
    }
    close()
    expect(JSON.stringify(outcome)).not.toContain(CLIENT.secret)
    return outcome
  }
  expect(await check({})).toBeNull()
  const working = {
    'oidc-issuer': issuer,
    'oidc-client-id': CLIENT.id,
    'oidc-client-secret': CLIENT.secret,
    'oidc-name': 'Example Login',
    'oidc-allow-ranges': ['127.0.0.1'],
  }
  expect(await check(working)).toMatchObject({
    title: `Example Login (${issuer}, client ${CLIENT.id})`,
    fault: null,
    why: null,
  })
  const other = await check({ ...working, 'oidc-issuer': `${issuer}/realms/shop` })
  expect(other).toMatchObject({ fault: null, why: expect.stringMatching(/\S/) })
  expect(await check({ 'oidc-issuer': issuer })).toMatchObject({
    fault: expect.stringContaining('Set EV_OIDC_CLIENT_ID and EV_OIDC_CLIENT_SECRET too'),
  })
})
