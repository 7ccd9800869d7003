import type { Meaning, ReplyRule } from './generic.ts'

const forProvider =
  (provider: string, source: string) =>
  (
    meaning: Meaning,
    pattern: RegExp,
    more: Pick<ReplyRule, 'code' | 'enhanced' | 'stage'> = {},
  ): ReplyRule => ({
    meaning,
    pattern,
    ...more,
    provider,
    source,
  })

const google = forProvider('google', 'Google Workspace SMTP errors reference')
const microsoft = forProvider('microsoft', 'Exchange Online NDR codes; postmaster.live.com')
const exchange = forProvider('exchange', 'Exchange Server DSN codes')
const yahoo = forProvider('yahoo', 'Yahoo Sender Hub SMTP error codes')
const apple = forProvider('icloud', 'sisimai: rhost/apple')
const comcast = forProvider('comcast', 'Comcast postmaster error codes')
const cox = forProvider('cox', 'Cox email error codes')
const proofpoint = forProvider('proofpoint', 'smtp-field-manual')
const mimecast = forProvider('mimecast', 'Mimecast SMTP error codes (DOC-1369)')
const barracuda = forProvider('barracuda', 'smtp-codes')
const cisco = forProvider('cisco', 'Cisco Secure Email SMTP replies')
const trend = forProvider('trend-micro', 'smtp-codes')
const rackspace = forProvider('rackspace', 'sisimai: rhost, smtp-codes')
const godaddy = forProvider('godaddy', 'GoDaddy email bounceback codes; sisimai: rhost/godaddy')
const yandex = forProvider('yandex', 'smtp-codes')
const rambler = forProvider('rambler', 'smtp-codes')
const mailru = forProvider('mail-ru', 'smtp-codes')
const orange = forProvider('orange', 'Orange postmaster codes; sisimai: rhost')
const free = forProvider('free', 'sisimai: Suspend')
const gmx = forProvider('gmx', 'GMX and web.de postmaster error messages')
const telekom = forProvider('t-online', 't-online.de postmaster; sisimai: BadReputation')
const tencent = forProvider('tencent', 'QQ mail help 20022; sisimai: rhost/tencentqq')
const netease = forProvider('netease', 'NetEase postmaster error codes')
const titan = forProvider('titan', 'smtp-codes')
const improvmx = forProvider('improvmx', 'ImprovMX error codes')
const exim = forProvider(
  'exim',
  'Exim specification: host_reject_connection; its default configuration',
)
const cpanel = forProvider('cpanel', 'cPanel: unroutable mail')
const opensmtpd = forProvider(
  'opensmtpd',
  'OpenSMTPD smtp_session.c: an address without an entry in a virtual table',
)
const postfix = forProvider(
  'postfix',
  'Postfix smtpd_check.c: unverified_recipient_reject_code, 450 unless it is set',
)
const sendmail = forProvider('sendmail', 'Sendmail cf/README')
const qmail = forProvider('qmail', 'qmail-smtpd, chkuser')
const courier = forProvider('courier', 'courier(8), trackaddress in submit')
const spectrum = forProvider('charter', 'Spectrum email error codes')
const att = forProvider('att', 'sisimai: UserUnknown; AT&T postmaster')
const hanmail = forProvider('daum', 'sisimai: Suspend')
const docomo = forProvider('docomo', 'sisimai: rhost/nttdocomo')
const zoho = forProvider('zoho', 'Zoho Mail SMTP errors')
const domino = forProvider('domino', 'HCL Domino: SMTP inbound relay controls')
const hmailserver = forProvider('hmailserver', 'hMailServer: SMTP error messages')
const symantec = forProvider('symantec', 'Symantec.cloud SMTP errors')

/** Rules for the texts of single providers, where the generic rules would be wrong. */
export const PROVIDER_PHRASES: readonly ReplyRule[] = [
  // A gateway defers although the server behind it has refused the recipient for good. It comes first,
  // because the rules below read the words of that server as those of a deferral.
  postfix(
    'rejected/no-mailbox',
    /unverified address: host \S{1,255}(?: \S{1,60})? said: 5\d\d[ -]5\.1\.10?(?![\d.])(?![^;]{0,300}(?:denied|blocked|refused|spam|policy))/,
    { code: /^450$/, enhanced: /^4\.1\.1$/ },
  ),
  google('rejected/no-mailbox', /p=nosuchuser|account that you tried to reach does not? exist/),
  // With 5.7.10 this text reports a command sequence error, not a demand for TLS.
  google('no-response/garbage', /smtp protocol violation/, { stage: 'rcpt' }),
  google(
    'rejected/disabled',
    /p=disableduser|account that you tried to reach is (?:disabled|inactive)/,
  ),
  google('rejected/full', /p=overquota|inbox is out of storage|tried to reach is over quota/),
  google('deferred/busy', /p=receivingrate|receiving (?:mail|e?mail) (?:at a rate|too quickly)/),
  google('blocked/auth', /invalid credentials for relay|mail relay denied/),
  google('blocked/policy', /user or domain that you are sending to \(or from\)/),
  // "This usually indicates a Denial of Service": too many sessions, at any stage.
  google('deferred/rate', /try again later, closing connection/, { enhanced: /^4\.7\.0$/ }),

  microsoft('blocked/policy', /all recipient addresses rejected ?: access denied/),
  microsoft('rejected/no-mailbox', /recipient address rejected: access denied/, {
    enhanced: /^5\.4\.1$/,
  }),
  microsoft('rejected/no-mailbox', /resolver\.adr\.(?:ex)?recip(?:ient)?notfound/),
  microsoft('rejected/not-hosted', /tenantattribution|recipient in non-accepted domain/),
  microsoft('deferred/too-many', /as780090|attr38|attr1\b|belong to multiple regions/),
  microsoft('deferred/busy', /no mail-enabled subscriptions|organization queue quota/),
  microsoft('deferred/rate', /as77712344|s3115|s311[47]|submission quota|recipient per hour/),
  microsoft('blocked/blocklist', /s3140|s3150|as16012611|\b(?:sc|dy|ou)-00\d\b|banned sending ip/),
  microsoft(
    'blocked/blocklist',
    /access denied, please try again later|access denied, banned (?!recipient)/,
  ),
  microsoft('blocked/policy', /does(?:n't| not) accept (?:e?mail|messages) over ipv6/),
  microsoft('rejected/disabled', /access denied, banned recipient|accountdisabledexception/),
  microsoft('rejected/full', /quotaexceededexception/),
  microsoft('deferred/busy', /attr3[45]/),
  exchange('deferred/busy', /insufficient system (?:resources|storage)/),
  exchange('rejected/no-mailbox', /single label domains|reserved by rfc 2606/),

  yahoo(
    'rejected/no-mailbox',
    /user doesn't have an? [a-z.]{1,30} account|aborted, mailbox not found/,
  ),
  yahoo('rejected/disabled', /\(554\.30\)|\[-20\]|mailbox (?:is currently|has been) disabled/),
  yahoo('blocked/blocklist', /\[(?:tss(?:0[6-9]|1\d)|bl\d\d|ipts?\d\d)\]|permanently deferred/),
  yahoo('deferred/rate', /\[(?:tss?0[1-5]|con\d\d)\]|unexpected volume or user complaints/),
  yahoo('deferred/greylist', /\[gl\d\d\]/),
  yahoo('blocked/policy', /\[(?:ph|fb)\d\d\]/),
  yahoo('blocked/blocklist', /\((?:con|rly|rtr|dyn|scon|hvu):[a-z0-9]{1,4}\)|\(dns:nr\)/),
  apple('blocked/sender', /\[hme1\]/),
  apple('blocked/policy', /\[(?:cs|hm)\d\d\]/),
  apple('blocked/blocklist', /\[ip\d\d\]|esmtp not accepting connections/),
  proofpoint(
    'deferred/busy',
    /recipient address rejected: unverified|address verification in progress/,
    {
      code: /^4/,
    },
  ),
  proofpoint('blocked/blocklist', /prs\.proofpoint|proofpoint\.com\/dnsbl|blocked - see /),
  mimecast('deferred/greylist', /internal resources? (?:is |are )?temporarily unavailable/),
  mimecast(
    'rejected/no-mailbox',
    /invalid recipient - [^;]{0,60}doc-1369|known recipient address/,
    {
      code: /^[45]/,
    },
  ),
  mimecast('rejected/not-hosted', /open relay (?:is )?not allowed|account inbounds disabled/, {
    code: /^[45]/,
  }),
  mimecast(
    'deferred/busy',
    /hostname is not authori[sz]ed|incorrect hostname used|account outbounds disabled/,
  ),
  barracuda('blocked/policy', /one or more recipients ?\([^)]{0,40}:blocked\)/),
  barracuda('blocked/policy', /policy rejection/, { code: /^450$/ }),
  trend('blocked/blocklist', /\bers-(?:dul|rbl|qil)|rbl\+|email reputation service/),
  cisco('blocked/blocklist', /your access to (?:this|submit)|\bsbrs\b/),
  symantec('blocked/policy', /connection rejected by policy/),

  comcast('blocked/blocklist', /\b(?:bl|es)0000\d\d\b/),
  comcast('deferred/rate', /\brl0000\d\d\b/),
  cox('deferred/rate', /aup#(?:cxcnct|cxthrt|lim|ivpxmt)|\bcxthrt\b/),
  cox('blocked/rdns', /aup#cxdns/),
  cox('blocked/blocklist', /aup#(?:cdrbl|cxbl|cxmj|bl|in|rbl)/),
  att('rejected/no-mailbox', /addressee unknown|blank mailhost/),
  att('blocked/blocklist', /blocked by ldap|dnsbl:attrbl|blocked for abuse/),
  spectrum('blocked/sender', /\be2110\b/),
  spectrum('blocked/blocklist', /\be(?:3\d{3}|1[0-9]{3})\b[^;]{0,60}(?:block|reputation|reject)/),
  rackspace('rejected/no-mailbox', /\(g[89]\)/),
  rackspace('blocked/rdns', /\(?\bg1f\)?/),
  rackspace('deferred/rate', /\(g(?:2|28)\)/),
  rackspace('deferred/busy', /\(g30\)/),
  godaddy('blocked/rdns', /\bib(?:108|301)\b/),
  godaddy('blocked/sender', /\bib50[1268]\b/),
  godaddy('blocked/auth', /\bib4\d\d\b/),
  godaddy('blocked/policy', /\bib[27]\d\d\b/),
  godaddy('deferred/too-many', /\bib605\b/),
  godaddy('deferred/rate', /\bib(?:007|50[47]|510|60\d)\b/),
  godaddy(
    'blocked/blocklist',
    /\b(?:rbl|listed)\b[^;]{0,200}\bib1\d\d\b|\bib1\d\d\b[^;]{0,200}\b(?:rbl|listed)\b/,
  ),
  // With a 4xx the block is temporary, unless the text names a blocklist.
  godaddy('deferred/rate', /\bib1\d\d\b/, { code: /^4/ }),
  godaddy('blocked/blocklist', /\bib1\d\d\b/),
  // The limit of messages that a mailbox or a domain receives, whatever the words before it.
  titan('deferred/rate', /quota exceeded/, { enhanced: /^5\.4\.[67]$/ }),
  titan('rejected/disabled', /incoming suspended due to abuse/),
  improvmx('rejected/not-hosted', /#id-5\.9\.[235]/),
  improvmx('deferred/busy', /#id-5\.9\.4/),

  yandex('rejected/disabled', /policy rejection on the target address/),
  rambler('rejected/disabled', /recipient address rejected: (?:inactive|blocked)/, {
    code: /^540$/,
  }),
  mailru(
    'rejected/disabled',
    /local mailbox [^;]{0,80}is unavailable: (?:account is disabled|user is terminated)/,
  ),
  orange('blocked/sender', /emetteur invalide|\b(?:ofr|lpn)\d{0,3}_(?:40[135]|415|421|517)\b/),
  orange('blocked/auth', /\b(?:ofr|lpn)\d{0,3}_(?:305|402)\b/),
  orange('rejected/no-mailbox', /\b(?:ofr|lpn)\d{0,3}_41[68]\b/),
  orange('rejected/full', /\b(?:ofr|lpn)\d{0,3}_417\b/),
  orange('rejected/disabled', /\b(?:ofr|lpn)\d{0,3}_42[06]\b/),
  orange('deferred/rate', /\b(?:ofr|lpn)\d{0,3}_10[49]\b/),
  orange('blocked/blocklist', /\b(?:ofr|lpn)\d{0,3}_(?:10[0-3]|63\d)\b/),
  orange('deferred/busy', /\b(?:ofr|lpn)\d{0,3}_505\b/),
  orange('blocked/policy', /\b(?:ofr|lpn)\d{0,3}_(?:30\d|50[016789]|51\d)\b/),
  free('rejected/disabled', /blocked due to inactivity/),
  gmx('blocked/policy', /reject due to policy restrictions/),
  gmx('deferred/busy', /nemesis[^;]{0,40}temporar|requested action aborted: local error/),
  gmx('blocked/blocklist', /nemesis esmtp service not available/),
  telekom('blocked/blocklist', /\bip=[^;]{0,60}(?:none|bad|poor|dynamic)|none\/bad reputation/),
  // The recipient receives too many messages at the moment.
  tencent('deferred/busy', /mailbox unavailable or access denied/),
  netease('blocked/blocklist', /\b(?:hl|ip):(?:ipb|ihu|itc|rep|icc|def|mec)\b/),
  netease('deferred/rate', /\b(?:rp|mi):(?:cel|trc|orq|qrc|qin|ecn|srt|sfq|stc)\b/),
  netease('blocked/policy', /\b(?:dt|mi):(?:spm|sum|spb|cel)\b/),
  netease('rejected/full', /quota exceed the hard limit/),
  hanmail('rejected/disabled', /\bract\b/),
  // No data is sent before RCPT, so this is the quota of the mailbox.
  docomo('rejected/full', /too much mail data/, { code: /^552$/, stage: 'rcpt' }),
  zoho('blocked/policy', /rejected by destination domain/),
  domino('rejected/not-hosted', /^relay rejected for policy/),
  hmailserver('rejected/not-hosted', /^delivery is not allowed to this address/),
  qmail('rejected/no-mailbox', /no mailbox here by that name|(?:badrcptto|validrcptto)/),
  qmail('rejected/not-hosted', /list of allowed rcpthosts|couldn't find any host named/),
  exim('blocked/blocklist', /^smtp service not available/, { stage: 'before-rcpt' }),
  exim('deferred/too-many', /^too many messages in this connection/),
  exim('rejected/no-mailbox', /restricted characters in address/),
  // The server behind this one refused the callout before RCPT.
  exim('deferred/busy', /callback setup failed.{0,1000}recipient verif/),
  // Exim sends these lines for the sender, unless the last line names the recipient.
  exim(
    'blocked/sender',
    /(?:(?<!(?:recipient|address|mailbox|user) )verification failed for <>|callback setup failed|postmaster verification failed)(?!.{0,1000}recipient verif)/,
  ),
  exim('no-response/garbage', /synchroni[sz]ation error/, { stage: 'rcpt' }),
  // Mostly about the sender, but the text for a recipient is the same, so the mailbox stays
  // unknown.
  cpanel('blocked/sender', /^the mail server could not deliver mail to <>/),
  // Mail to the address failed in the last hours, whatever the cause.
  courier('deferred/busy', /^address unavailable\.?$/, { code: /^556$/ }),
  opensmtpd('rejected/no-mailbox', /^mailing list expansion problem/),
  sendmail('blocked/rdns', /invalid domain name/, { code: /^501$/ }),
  sendmail('blocked/rdns', /relaying denied\. ip name/),
  sendmail(
    'blocked/rdns',
    /^(?:possibly forged hostname|client ip address .{1,45} does not resolve)/,
  ),
]
