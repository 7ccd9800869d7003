import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { selfSigned } from '../../src/simulator/smtp-host/host.ts'
import { freePort } from '../support/free-port.ts'
import {
  EXTRA_DOMAINS,
  KINDS,
  MAPS,
  NOT_HOSTED,
  type Parameters,
  SCREENED,
  SERVICES,
} from './postfix-services.ts'
import {
  type Daemon,
  installed,
  missingFiles,
  type RealServer,
  type ServerEnvironment,
  startDaemon,
  untilListening,
} from './server.ts'

const DOMAINS = [...Object.keys(SERVICES), ...Object.keys(SCREENED)]
/** Returns the address of a domain: 127.0.2.1 for the first one, and so on. */
const addressOf = (domain: string) => `127.0.2.${DOMAINS.indexOf(domain) + 1}`
const GREY = '127.0.2.250'

let daemons: Daemon[] = []

/** One Postfix with an smtpd for each domain, and postgrey. */
export const postfix: RealServer = {
  name: 'postfix',
  domains: Object.fromEntries(DOMAINS.map(domain => [domain, addressOf(domain)])),
  missing: () => missingFiles('Postfix', 'usr/lib/postfix/sbin/master', 'usr/sbin/postgrey'),
  async start(env) {
    const greyPort = await freePort()
    createFiles(env, greyPort)
    const grey = startPostgrey(env, greyPort)
    const master = startDaemon({
      name: 'master',
      dir: env.dir,
      command: 'usr/lib/postfix/sbin/master',
      args: ['-d', '-c', join(env.dir, 'etc')],
      environment: { MAIL_CONFIG: join(env.dir, 'etc') },
    })
    daemons = [master, grey]
    await untilListening(grey, [GREY], greyPort)
    // It listens in the order of master.cf, before it serves clients.
    await untilListening(master, DOMAINS.slice(-1).map(addressOf), env.port)
  },
  async stop() {
    await Promise.all(daemons.splice(0).map(daemon => daemon.stop()))
  },
}

/** Returns the log lines of the smtpd of a domain. */
export const postfixLog = (dir: string, domain: string): string[] =>
  readFileSync(join(dir, 'mail.log'), 'utf8')
    .split('\n')
    .filter(line => line.includes(` ${domain}/smtpd[`))

function startPostgrey({ dir }: ServerEnvironment, port: number): Daemon {
  const state = join(dir, 'postgrey')
  mkdirSync(state)
  return startDaemon({
    name: 'postgrey',
    dir,
    command: '/usr/bin/perl',
    // No automatic whitelisting of clients.
    args: [
      // Taint mode, as in the first line of the script, which ignores PERL5LIB.
      '-T',
      ...PERL_FOLDERS.map(folder => `-I${installed(folder)}`),
      installed('usr/sbin/postgrey'),
      `--inet=${GREY}:${port}`,
      `--delay=${GREY_DELAY_S}`,
      `--dbdir=${state}`,
      '--auto-whitelist-clients=0',
      `--whitelist-clients=${installed('etc/postgrey/whitelist_clients')}`,
      `--whitelist-recipients=${installed('etc/postgrey/whitelist_recipients')}`,
      '--user=root',
      '--group=root',
    ],
  })
}

/** Greylisting delay of postgrey, in seconds. */
const GREY_DELAY_S = 2
const PERL_FOLDERS = ['usr/share/perl5', ...perlFolders()]

/**
 * Returns the module folders of this Perl, such as usr/share/perl/5.36, which minimal systems lack.
 */
function perlFolders(): string[] {
  const script = 'print join " ", @Config{qw(vendorarch archlib privlib)}'
  const { stdout } = spawnSync('perl', ['-MConfig', '-e', script], { encoding: 'utf8' })
  return (stdout ?? '').split(' ').filter(folder => folder !== '')
}

/** Creates the folders and files of the instance, with the owners that Postfix requires. */
function createFiles({ dir, port, nameServer }: ServerEnvironment, greyPort: number) {
  const mailOwner = idOf('postfix', '-u')
  const dropGroup = idOf('postdrop', '-g')
  for (const name of ['etc', 'maps', 'queue', 'data', 'queue/etc']) mkdirSync(join(dir, name))
  for (const name of QUEUE_FOLDERS) mkdirSync(join(dir, 'queue', name))
  for (const name of [...QUEUE_FOLDERS.map(folder => `queue/${folder}`), 'data']) {
    chownSync(join(dir, name), mailOwner, name === 'queue/public' ? dropGroup : 0)
    chmodSync(join(dir, name), name === 'queue/public' ? 0o710 : 0o700)
  }
  chownSync(join(dir, 'queue/pid'), 0, 0)
  // The smtpds run in a chroot at the queue folder and read its resolv.conf.
  writeFileSync(join(dir, 'queue/etc/resolv.conf'), `nameserver ${nameServer}\n`)
  writeFileSync(join(dir, 'queue/etc/hosts'), '')
  const { key, cert } = selfSigned('mx.known.test')
  writeFileSync(join(dir, 'etc/tls.pem'), key + cert, { mode: 0o600 })
  writeFileSync(join(dir, 'etc/main.cf'), mainCf(dir))
  writeFileSync(join(dir, 'etc/master.cf'), masterCf(dir, port, greyPort))
  for (const [name, text] of Object.entries({ ...MAPS, mailboxes: mailboxes() })) {
    writeFileSync(join(dir, 'maps', name), text.trimStart())
  }
}

const QUEUE_FOLDERS =
  'active bounce corrupt defer deferred flush hold incoming maildrop pid private public saved trace'.split(
    ' ',
  )

const idOf = (name: string, kind: '-u' | '-g') =>
  Number(execFileSync('id', [kind, name], { encoding: 'utf8' }))

/** Returns the users of all domains. */
function mailboxes(): string {
  const users = ['ann', 'bob', 'info', 'old', 'jörg', 'ann smith', 'x'.repeat(64)]
  const numbered = Array.from({ length: 200 }, (_, n) => `user${n + 1}`)
  const mapped = [...(MAPS.told ?? '').matchAll(/^([a-z-]+)@/gm)].map(match => match[1] as string)
  const all = [...users, ...numbered, ...mapped]
  const domains = [...DOMAINS, ...EXTRA_DOMAINS]
  return domains.flatMap(domain => all.map(user => `${quoted(user)}@${domain} there`)).join('\n')
}

const quoted = (user: string) => (user.includes(' ') ? `"${user}"` : user)

function mainCf(dir: string): string {
  const parameters: Parameters = {
    compatibility_level: '3.6',
    myhostname: 'mx.known.test',
    ...KINDS,
    inet_protocols: 'ipv4',
    // No client is local, so limits and restrictions also apply to loopback.
    mynetworks: '192.0.2.0/24',
    smtpd_client_event_limit_exceptions: '',
    daemon_directory: installed('usr/lib/postfix/sbin'),
    command_directory: installed('usr/sbin'),
    shlib_directory: installed('usr/lib/postfix'),
    meta_directory: installed('usr/share/postfix'),
    queue_directory: join(dir, 'queue'),
    data_directory: join(dir, 'data'),
    import_environment: 'MAIL_CONFIG LD_LIBRARY_PATH PATH',
    maillog_file: join(dir, 'mail.log'),
    maillog_file_prefixes: dir,
    alias_maps: '',
    alias_database: '',
    virtual_mailbox_domains: [...DOMAINS, ...EXTRA_DOMAINS].filter(isVirtual).join(' '),
    virtual_mailbox_maps: `texthash:${dir}/maps/mailboxes`,
    local_recipient_maps: `texthash:${dir}/maps/mailboxes`,
    relay_recipient_maps: `texthash:${dir}/maps/mailboxes`,
    virtual_alias_maps: `texthash:${dir}/maps/aliases`,
    relocated_maps: `texthash:${dir}/maps/relocated`,
    virtual_transport: 'discard:',
    transport_maps: `texthash:${dir}/maps/transports`,
    recipient_delimiter: '+',
    smtpd_relay_restrictions: 'reject_unauth_destination',
    smtpd_tls_chain_files: join(dir, 'etc/tls.pem'),
    address_verify_map: `btree:${dir}/data/verify`,
    // The default is one minute, which is too long for a test.
    anvil_rate_time_unit: '2s',
  }
  return Object.entries(parameters)
    .map(([name, value]) => `${name} = ${value}\n`)
    .join('')
}

const isVirtual = (domain: string) =>
  !Object.values(KINDS).includes(domain) && !NOT_HOSTED.includes(domain)

function masterCf(dir: string, port: number, greyPort: number): string {
  const at = (domain: string) => `${addressOf(domain)}:${port}`
  const own = (parameters: Parameters) => overrides(parameters, dir, greyPort)
  const smtpds = Object.entries(SERVICES).map(
    ([domain, parameters]) =>
      `${at(domain)} inet n - y - - smtpd\n${own({ ...parameters, syslog_name: domain })}`,
  )
  const screens = Object.entries(SCREENED).map(([domain, parameters], n) => {
    const before = {
      ...parameters,
      smtpd_service_name: `pass${n}`,
      postscreen_cache_map: `btree:$dir/data/screen${n}`,
    }
    return `pass${n} pass - - y - - smtpd\n${at(domain)} inet n - n - 1 postscreen\n${own(before)}`
  })
  return `${INNER_SERVICES}${[...smtpds, ...screens].join('\n')}\n`
}

/** Formats `-o { name = value }` for each parameter, with placeholders replaced. */
function overrides(parameters: Parameters, dir: string, greyPort: number): string {
  const filled = (value: string) =>
    value
      .replaceAll('regexp:$maps', `regexp:${dir}/maps`)
      .replaceAll('cidr:$maps', `cidr:${dir}/maps`)
      .replaceAll('$maps', `texthash:${dir}/maps`)
      .replaceAll('$grey', `inet:${GREY}:${greyPort}`)
      .replaceAll('$dir', dir)
  return Object.entries(parameters)
    .map(([name, value]) => `  -o { ${name} = ${filled(value)} }`)
    .join('\n')
}

const INNER_SERVICES = `
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
verify unix - - n - 1 verify
anvil unix - - n - 1 anvil
proxymap unix - - n - - proxymap
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
tlsmgr unix - - n 1000? 1 tlsmgr
tlsproxy unix - - n - 0 tlsproxy
dnsblog unix - - y - 0 dnsblog
postlog unix-dgram n - n - 1 postlogd
`.trimStart()
