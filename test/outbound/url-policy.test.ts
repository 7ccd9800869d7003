import { describe, expect, test } from 'vitest'
import { createIpPolicy } from '../../src/engine/smtp/dial-policy.ts'
import { URL_LENGTH_MAX, validateUrl } from '../../src/outbound/url-policy.ts'
import { type Zone, zone } from '../support/zone.ts'

const PUBLIC = '8.8.8.8'
const names = () =>
  zone({
    'app.example': { A: [PUBLIC], AAAA: ['2a00:1450::1'] },
    'xn--bcher-kva.example': { A: [PUBLIC] },
    'inside.example': { A: ['10.0.0.7'] },
    'mixed.example': { A: [PUBLIC, '192.168.0.1'] },
    'six.example': { A: [PUBLIC], AAAA: ['fd00::1'] },
    'half.example': { A: [PUBLIC], AAAA: 'server' },
    'mail.example': { MX: [[10, 'app.example']] },
  })
const fault = (url: string, allowed: string[] = [], resolver: Zone = names()) =>
  validateUrl(url, { resolver, mayDial: createIpPolicy(allowed) })

describe('a webhook URL', () => {
  test.each([
    'https://app.example/hook',
    'https://app.example',
    'https://app.example./hook?a=b',
    'https://app.example:443/',
    'https://app.example:8443/',
    'https://bücher.example/',
    'HTTPS://APP.EXAMPLE/Hook',
    `https://${PUBLIC}/`,
    'https://[2a00:1450::1]:8443/',
  ])('%s is valid', async url => {
    expect(await fault(url)).toBeNull()
  })

  test.each([
    ['http://app.example/', /begin with https/],
    ['file:///etc/passwd', /begin with https/],
    ['javascript:alert(1)', /begin with https/],
    ['app.example/hook', /not a URL/],
    ['https://', /not a URL/],
    ['https:app.example/hook', /not a URL/],
    ['https:/app.example/hook', /not a URL/],
    ['http:127.0.0.1/hook', /not a URL/],
    ['', /not a URL/],
    ['https://app.example/a b', /spaces/],
    ['https://app.example/\n', /spaces/],
    ['https://app.exa\u200bmple/', /control/],
    ['https://ann:secret@app.example/', /password/],
    ['https://ann@app.example/', /password/],
    ['https://app.example/#top', /fragment/],
    ['https://app.example:25/', /Port 25 /],
    ['https://app.example:22/', /Port 22 /],
    ['https://app.example:80/', /Port 80 /],
    ['https://app.example:6379/', /Port 6379 /],
    ['https://app.example:0/', /Port 0 /],
    [`https://app.example/${'a'.repeat(URL_LENGTH_MAX)}`, /longer than/],
    ['https://nobody.example/', /no address/],
    ['https://mail.example/', /no address/],
    ['https://half.example/', /could not be looked up/],
  ])('%s is rejected, with the reason', async (url, reason) => {
    expect(await fault(url)).toMatch(reason)
  })

  test.each([
    'https://127.0.0.1/',
    'https://127.1/', // short
    'https://2130706433/', // one number
    'https://0x7f.0.0.1/', // hexadecimal
    'https://0x7f000001/',
    'https://0177.0.0.1/', // octal
    'https://127.0.0.1./', // with the dot of the root
    'https://１２７.０.０.１/', // full-width digits
    'https://127。0。0。1/', // ideographic full stops
    'https://0/',
    'https://10.1.2.3/',
    'https://169.254.169.254/latest/meta-data/',
    'https://100.64.0.1/',
    'https://[::1]/',
    'https://[::]/',
    'https://[::ffff:127.0.0.1]/', // mapped
    'https://[::ffff:7f00:1]/',
    'https://[::127.0.0.1]/', // compatible
    'https://[64:ff9b::7f00:1]/', // NAT64
    'https://[2002:7f00:1::]/', // 6to4
    'https://[fe80::1]/',
    'https://[fd00:ec2::254]/',
    'https://localhost/',
    'https://LOCALHOST./',
    'https://a.localhost:8443/',
    'https://inside.example/',
    'https://mixed.example/',
    'https://six.example/',
  ])('%s is not public', async url => {
    expect(await fault(url)).toMatch(/is not public/)
  })

  test('an address with a zone is not a URL', async () => {
    expect(await fault('https://[fe80::1%25lo]/')).toMatch(/not a URL/)
  })

  test('ranges that the admin allows are accepted, by name and by address', async () => {
    const allowed = ['127.0.0.0/8', '10.0.0.0/8']
    expect(await fault('https://127.0.0.1:8443/', allowed)).toBeNull()
    expect(await fault('https://localhost:8443/', allowed)).toBeNull()
    expect(await fault('https://inside.example/', allowed)).toBeNull()
    expect(await fault('https://mixed.example/', allowed)).toMatch(/not public/)
  })

  test('plain HTTP is for this machine only, if its loopback address is allowed', async () => {
    const local = [
      ...['http://127.0.0.1:8081/', 'http://127.9.9.9:8081/hook', 'http://[::1]:8081/'],
      ...['http://localhost:8081/', 'http://LOCALHOST.:8081/', 'http://a.localhost:8081/'],
    ]
    for (const url of local) {
      expect([url, await fault(url, ['127.0.0.0/8', '::1'])]).toEqual([url, null])
      expect([url, await fault(url)]).toEqual([url, 'It must begin with https://.'])
    }
    const resolver = zone({ 'here.example': { A: ['127.0.0.1'] } })
    for (const host of [
      ...['here.example', PUBLIC, '10.0.0.7', '0.0.0.0', '[::]', '[::ffff:127.0.0.1]'],
      ...['127.0.0.1.example', 'localhost.example', 'notlocalhost', '[2a00:1450::1]'],
    ]) {
      const message = await fault(`http://${host}:8081/`, ['0.0.0.0/0', '::/0'], resolver)
      expect([host, message]).toEqual([host, 'It must begin with https://.'])
    }
    expect(await fault('http://localhost/', ['127.0.0.1'])).toMatch(/Port 80 /)
    expect(await fault('http://localhost:6379/', ['127.0.0.1'])).toMatch(/Port 6379 /)
  })

  test('reports that a name has a private address, but not which', async () => {
    expect(await fault('https://mixed.example/')).toBe(
      'The name mixed.example has an address that is not public.',
    )
    expect(await fault('https://0x7f.1/')).toBe('The address 127.0.0.1 is not public.')
  })

  test('causes no DNS query for an address or an invalid URL', async () => {
    const resolver = names()
    for (const url of ['https://10.0.0.1/', 'http://app.example/', 'https://app.example:25/']) {
      await fault(url, [], resolver)
    }
    expect(resolver.asked).toEqual([])
    await fault('https://app.example/', [], resolver)
    expect(resolver.asked).toEqual(['A app.example', 'AAAA app.example'])
  })
})
