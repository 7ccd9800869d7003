import { EvError } from '../platform/error.ts'
import { joinWords } from '../platform/format.ts'
import { findNearestName } from '../platform/nearest-name.ts'
import type { Environment } from './setting.ts'
import { SETTINGS } from './settings.ts'

const PREFIX = 'EV_'

/**
 * Variables that are not settings: of single commands, of clients in the same environment, and the
 * folder where ev is installed, which scripts name `EV_HOME` by convention.
 */
const OTHER_VARIABLES = [
  'EV_CONFIG',
  'EV_HOME',
  'EV_KEY',
  'EV_KEY_FILE',
  'EV_API_KEY',
  'EV_URL',
  'EV_WEBHOOK_SECRET',
  'EV_BACKUP_PASSPHRASE',
] as const

/**
 * Names that Kubernetes and Docker set in every container for a service or a linked container whose
 * name is `ev` or starts with `ev-`, such as EV_SERVICE_HOST, EV_PORT_8080_TCP_ADDR or
 * EV_DB_ENV_PATH.
 */
const SERVICE_LINK =
  /^EV_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?|ENV_\w+)$/

/** They also set EV_PORT and names such as EV_DB_PORT to a URL, which no setting takes as a port. */
const isServiceLink = (name: string, value: string) =>
  SERVICE_LINK.test(name) ||
  (name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value)) ||
  (name.endsWith('_NAME') && /^\/[^/]+\/[^/]+$/.test(value))

/** Returns the names of variables that Kubernetes and Docker have set for a service named `ev`. */
export const findServiceLinks = (environment: Environment): string[] =>
  Object.entries(environment)
    .filter(([name, value = '']) => name.startsWith(PREFIX) && isServiceLink(name, value))
    .map(([name]) => name)
    .sort()

/** Removes the variables that Kubernetes and Docker have set for a service named `ev`. */
export function withoutServiceLinks(environment: Environment): Environment {
  const links = new Set(findServiceLinks(environment))
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !links.has(name)))
}

/**
 * Throws EvError('bad_config') for variables that start with EV_ and are not known: a misspelled
 * setting would otherwise have no effect. The message has no values, which may be secrets.
 */
export function refuseUnknownVariables(environment: Environment): void {
  const known = [...SETTINGS.map(one => one.environment), ...OTHER_VARIABLES]
  const unknown = Object.entries(environment)
    .filter(([name, value]) => name.startsWith(PREFIX) && value !== undefined && value !== '')
    .map(([name]) => name)
    .filter(name => !known.includes(name))
    .sort()
  if (unknown.length === 0) return
  const nearest = unknown
    .map(name => findNearestVariable(name, known))
    .filter(name => name !== null)
  const meant = nearest.length === 0 ? '' : ` Did you mean ${joinWords(nearest, 'and')}?`
  const verb = unknown.length === 1 ? 'is not a setting' : 'are not settings'
  throw new EvError(
    'bad_config',
    `${joinWords(unknown, 'and')} in the environment ${verb} of ev.${meant} ${ALL_SETTINGS}`,
  )
}

/** The prefix is in all names, so it does not make two of them similar. */
function findNearestVariable(name: string, known: readonly string[]): string | null {
  const bare = (one: string) => one.slice(PREFIX.length)
  const nearest = findNearestName(bare(name), known.map(bare))
  return nearest === null ? null : `${PREFIX}${nearest}`
}

/** Help works with any settings; `ev config` reads them. */
export const ALL_SETTINGS = 'To list all settings, run "ev config --help-all".'
