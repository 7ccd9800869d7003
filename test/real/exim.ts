import { execFileSync } from 'node:child_process'
import { chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { selfSigned } from '../../src/simulator/smtp-host/host.ts'
import {
  ALIASES,
  HOSTS,
  type HostConfig,
  OPTIONS,
  type Stage,
  UNKNOWN_USER_REPLIES,
  USERS,
} from './exim-manners.ts'
import { rootOf, startInOwnRoot } from './own-root.ts'
import {
  type Daemon,
  missingFiles,
  type RealServer,
  type ServerEnvironment,
  untilListening,
} from './server.ts'

const PROGRAM = 'usr/sbin/exim4'
const USER = 'Debian-exim'
const NAMES = Object.keys(HOSTS)
const domainOf = (name: string) => `${name}.exim.test`
/** Returns the address of a host: 127.0.3.1 for the first one, and so on. */
const addressOf = (name: string) => `127.0.3.${NAMES.indexOf(name) + 1}`

let daemon: Daemon | null = null

/** One Exim that plays many hosts: its behavior depends on the address of the connection. */
export const exim: RealServer = {
  name: 'exim',
  domains: Object.fromEntries(NAMES.map(name => [domainOf(name), addressOf(name)])),
  missing: () => missingFiles('Exim', PROGRAM),
  async start(env) {
    const owner = Number(execFileSync('id', ['-u', USER], { encoding: 'utf8' }))
    for (const folder of ['spool', 'log']) {
      mkdirSync(join(rootOf(env), 'exim', folder), { recursive: true })
      chownSync(join(rootOf(env), 'exim', folder), owner, 0)
    }
    const { key, cert } = selfSigned('mx.exim.test')
    daemon = startInOwnRoot({
      env,
      programs: [PROGRAM],
      args: ['-C', '/exim/conf', '-bdf'],
      users: [USER],
      files: {
        '/exim/conf': configuration(env),
        '/exim/tls.pem': key + cert,
        '/exim/users': USERS.map(user => `${user}:\n`).join(''),
        '/exim/aliases': ALIASES.trimStart(),
        '/exim/strangers': Object.entries(UNKNOWN_USER_REPLIES)
          .map(([name, text]) => `${domainOf(name)}: ${text}\n`)
          .join(''),
      },
    })
    await untilListening(daemon, NAMES.map(addressOf), env.port)
  },
  async stop() {
    await daemon?.stop()
    daemon = null
  },
}

/** Returns the main options and the ACLs of each address, such as `rcpt_127_0_3_1`. */
const configuration = ({ port }: ServerEnvironment) => `
primary_hostname = mx.exim.test
exim_user = ${USER}
exim_group = ${USER}
spool_directory = /exim/spool
log_file_path = /exim/log/%slog
pid_file_path = /exim/spool/pid
local_interfaces = <; ${NAMES.map(addressOf).join(' ; ')}
daemon_smtp_ports = ${port}
keep_environment =
never_users =
# More than are ever used at once.
smtp_accept_max = 500
smtp_connect_backlog = 200
rfc1413_query_timeout = 0s
prdr_enable = true
# Limits that lists reach.
recipients_max = 4
smtp_accept_max_per_connection = 2
smtp_ratelimit_rcpt = 1,0.5s,1.5,4s
${Object.entries(OPTIONS).map(option).join('\n')}
domainlist ours = ${NAMES.filter(name => name !== 'elsewhere')
  .map(domainOf)
  .join(' : ')}
${STAGES.map(stage => `acl_smtp_${stage} = ${stage}_\${tr{$received_ip_address}{.}{_}}`).join('\n')}

begin acl
${Object.entries(HOSTS).map(acls).join('\n')}

begin routers
told:
  driver = redirect
  domains = ${domainOf('told')}
  data = \${lookup {$local_part} lsearch{/exim/aliases}}
  allow_fail
  allow_defer
inner:
  driver = manualroute
  # Connections to the inner server are not forwarded again.
  condition = \${if !eq{$received_ip_address}{${addressOf('known')}}}
  domains = ${['gateway', 'gateway-down', 'gateway-open'].map(domainOf).join(' : ')}
  route_list = ${domainOf('gateway')} ${addressOf('known')} ; * 127.0.9.1
  transport = remote
  self = send
  no_more
lookup_down:
  driver = accept
  domains = ${domainOf('lookup-down')}
  local_parts = lsearch;/exim/none
  transport = nowhere
users:
  driver = accept
  domains = +ours
  local_part_suffix = +*
  local_part_suffix_optional
  local_parts = lsearch;/exim/users
  transport = nowhere
everyone:
  driver = accept
  domains = ${domainOf('everyone')}
  transport = nowhere
others:
  driver = dnslookup
  domains = ! +ours
  transport = remote
  self = send
strangers:
  driver = redirect
  data = \${lookup {$domain} lsearch{/exim/strangers}{:fail: $value}}
  allow_fail

begin transports
remote:
  driver = smtp
  port = ${port}
nowhere:
  driver = appendfile
  file = /dev/null
`

const STAGES = ['connect', 'helo', 'mail', 'rcpt'] as const satisfies readonly Stage[]

/** Formats an option that has the value `there` for connections to one of these addresses. */
function option([name, [there, elsewhere, ...where]]: [string, (typeof OPTIONS)[string]]): string {
  const addresses = where.map(addressOf).join(' : ')
  return `${name} = \${if inlist{$received_ip_address}{${addresses}}{${there}}{${elsewhere}}}`
}

function acls([name, config]: [string, HostConfig]): string {
  const suffix = addressOf(name).replaceAll('.', '_')
  const rest = { connect: '', helo: '', mail: '', rcpt: RECIPIENTS }
  return STAGES.map(
    stage => `${stage}_${suffix}:
    ${config[stage] ?? ''}
    ${rest[stage]}
    accept
`,
  ).join('')
}

const RECIPIENTS = `require message = relay not permitted
      domains = +ours
    require verify = recipient`
