/**
 * Parameters of main.cf for one smtpd; `$maps`, `$grey` and `$dir` are placeholders of paths and
 * addresses.
 */
export type Parameters = Readonly<Record<string, string>>

/** Parameters by domain; each domain has its own smtpd on its own address. */
export const SERVICES: Readonly<Record<string, Parameters>> = {
  // User lookup.
  'known.test': { smtpd_tls_security_level: 'may', smtputf8_enable: 'no' },
  'utf8.test': { smtputf8_enable: 'yes' },
  'soft.test': { unknown_virtual_mailbox_reject_code: '450' },
  'soft-bounce.test': { soft_bounce: 'yes' },
  'silent-table.test': { show_user_unknown_table_name: 'no' },
  'footer.test': {
    smtpd_reject_footer:
      '\\c; call +1 555 0100 if you think we block you by mistake, $client_address, $localtime',
  },
  'everyone.test': { virtual_mailbox_maps: 'static:everyone' },
  'unlisted.test': { smtpd_reject_unlisted_recipient: 'no' },
  'local.test': {},
  'relayed.test': {},
  'aliased.test': {},
  'moved.test': {},
  'elsewhere.test': {},
  'elsewhere-soft.test': { smtpd_relay_restrictions: 'defer_unauth_destination' },
  'verified.test': {
    smtpd_recipient_restrictions: 'reject_unverified_recipient',
    virtual_mailbox_maps: 'static:everyone',
    unverified_recipient_reject_code: '550',
    address_verify_poll_count: '1',
  },
  'verified-now.test': {
    smtpd_recipient_restrictions: 'reject_unverified_recipient',
    virtual_mailbox_maps: 'static:everyone',
    unverified_recipient_reject_code: '550',
    address_verify_poll_count: '5',
    address_verify_poll_delay: '1s',
  },
  'verified-soft.test': {
    smtpd_recipient_restrictions: 'reject_unverified_recipient',
    virtual_mailbox_maps: 'static:everyone',
    address_verify_poll_count: '5',
    address_verify_poll_delay: '1s',
  },

  // Access maps and policy services.
  'told.test': { smtpd_recipient_restrictions: 'check_recipient_access $maps/told' },
  'grey.test': { smtpd_recipient_restrictions: 'check_policy_service $grey' },
  'grey-list.test': { smtpd_recipient_restrictions: 'check_policy_service $grey' },
  'lookup-down.test': { smtpd_recipient_restrictions: 'check_recipient_access fail:always' },
  'policy-down.test': {
    smtpd_recipient_restrictions: 'check_policy_service inet:127.0.9.1:1',
    smtpd_policy_service_try_limit: '1',
  },
  'submission.test': { smtpd_recipient_restrictions: 'permit_sasl_authenticated, reject' },
  'deferring.test': { smtpd_recipient_restrictions: 'defer' },
  'sleepy.test': { smtpd_client_restrictions: 'sleep 2', smtpd_delay_reject: 'no' },

  'sealed.test': { smtpd_tls_security_level: 'encrypt' },
  'sealed-late.test': {
    smtpd_tls_security_level: 'may',
    smtpd_recipient_restrictions: 'reject_plaintext_session',
  },
  'sealed-never.test': { smtpd_recipient_restrictions: 'reject_plaintext_session' },
  'wrapped.test': { smtpd_tls_wrappermode: 'yes', smtpd_tls_security_level: 'encrypt' },
  'keyless.test': { smtpd_tls_security_level: 'may', smtpd_tls_chain_files: '$dir/etc/none.pem' },
  'old-tls.test': {
    smtpd_tls_security_level: 'encrypt',
    smtpd_tls_mandatory_protocols: '!TLSv1.3, !TLSv1.2',
    tls_medium_cipherlist: 'ALL:@SECLEVEL=0',
  },
  'old-tls-offered.test': {
    smtpd_tls_security_level: 'may',
    smtpd_tls_protocols: '!TLSv1.3, !TLSv1.2',
    tls_medium_cipherlist: 'ALL:@SECLEVEL=0',
  },
  'client-certificate.test': {
    smtpd_tls_security_level: 'encrypt',
    smtpd_tls_req_ccert: 'yes',
  },

  // HELO name, sender and client address.
  'helo.test': { smtpd_helo_restrictions: 'reject_unknown_helo_hostname' },
  'helo-early.test': {
    smtpd_helo_restrictions: 'reject_unknown_helo_hostname',
    smtpd_delay_reject: 'no',
  },
  'helo-fqdn.test': { smtpd_helo_restrictions: 'reject_non_fqdn_helo_hostname' },
  'helo-fqdn-early.test': {
    smtpd_helo_restrictions: 'reject_non_fqdn_helo_hostname',
    smtpd_delay_reject: 'no',
  },
  'helo-access.test': { smtpd_helo_restrictions: 'check_helo_access $maps/helo' },
  'sender.test': { smtpd_sender_restrictions: 'reject_unknown_sender_domain' },
  'sender-early.test': {
    smtpd_sender_restrictions: 'reject_unknown_sender_domain',
    smtpd_delay_reject: 'no',
  },
  'sender-access.test': { smtpd_sender_restrictions: 'check_sender_access $maps/senders' },
  'sender-verified.test': {
    smtpd_sender_restrictions: 'reject_unverified_sender',
    unverified_sender_reject_code: '550',
    address_verify_poll_count: '5',
    address_verify_poll_delay: '1s',
  },
  'client-early.test': {
    smtpd_client_restrictions: 'check_client_access static:REJECT',
    smtpd_delay_reject: 'no',
  },
  'client-late.test': { smtpd_client_restrictions: 'check_client_access static:REJECT' },
  'client-name.test': { smtpd_client_restrictions: 'reject_unknown_client_hostname' },
  'client-ptr.test': { smtpd_client_restrictions: 'reject_unknown_reverse_client_hostname' },
  'listed.test': { smtpd_client_restrictions: 'reject_rbl_client dnsbl.test' },
  'listed-early.test': {
    smtpd_client_restrictions: 'reject_rbl_client dnsbl.test',
    smtpd_delay_reject: 'no',
  },
  'listed-soft.test': {
    smtpd_client_restrictions: 'reject_rbl_client dnsbl.test',
    maps_rbl_reject_code: '450',
  },
  'listed-helo.test': { smtpd_helo_restrictions: 'reject_rhsbl_helo dnsbl.test' },
  'hung-up.test': {
    smtpd_client_restrictions: 'check_client_access static:{521 5.7.1 Blocked}',
    smtpd_delay_reject: 'no',
  },
  'busy.test': {
    smtpd_client_restrictions: 'check_client_access static:{421 4.7.0 Your network sends too fast}',
    smtpd_delay_reject: 'no',
  },

  // Limits.
  'plain.test': { smtpd_discard_ehlo_keywords: 'pipelining, enhancedstatuscodes, 8bitmime' },
  'helo-only.test': { smtpd_command_filter: 'regexp:$maps/helo-only' },
  'few.test': { smtpd_recipient_limit: '3' },
  'one.test': { smtpd_recipient_limit: '1' },
  'list.test': {},
  'errors.test': {
    smtpd_soft_error_limit: '2',
    smtpd_hard_error_limit: '4',
    smtpd_error_sleep_time: '0s',
  },
  'tarpit.test': { smtpd_soft_error_limit: '1', smtpd_error_sleep_time: '1s' },
  'rcpt-rate.test': { smtpd_client_recipient_rate_limit: '4' },
  // Two of them, as counters are per service and both lists may be tested concurrently. Of four
  // connections, one may meet a limit of 1 three times, and an address is only tried three times.
  'mail-rate.test': { smtpd_client_message_rate_limit: '1' },
  'mail-rate-long.test': { smtpd_client_message_rate_limit: '2' },
  'connect-rate.test': { smtpd_client_connection_rate_limit: '1' },
}

/** Domains that are not virtual mailbox domains, by the parameter that names them. */
export const KINDS: Parameters = {
  mydestination: 'local.test',
  relay_domains: 'relayed.test',
  virtual_alias_domains: 'aliased.test',
}
export const NOT_HOSTED = ['elsewhere.test', 'elsewhere-soft.test']

/** Domains of fixtures/real/test.zone that the server of known.test accepts too. */
export const EXTRA_DOMAINS = [
  'alias alias-of-alias broken-first equal hangs-up-first implicit many nowhere-first null-beside',
  'number-beside odd-name refuses-first six-first some.wild to-alias two two-addresses upper',
  'xn--bcher-kva',
].flatMap(names => names.split(' ').map(name => `${name}.test`))

/** Domains behind a postscreen, with its parameters. */
export const SCREENED: Readonly<Record<string, Parameters>> = {
  // A banner line, and the rest after a delay: a client that talks before it is rejected.
  'screened.test': {
    postscreen_greet_banner: 'mx.screened.test, one moment',
    postscreen_greet_action: 'enforce',
    postscreen_greet_wait: '1s',
  },
  // Tests after the greeting: a new client is deferred once.
  'screened-deep.test': {
    postscreen_greet_wait: '1s',
    postscreen_pipelining_enable: 'yes',
    postscreen_non_smtp_command_enable: 'yes',
    postscreen_bare_newline_enable: 'yes',
  },
  // Long enough for the DNSBL answer on a busy machine.
  'screened-list.test': {
    postscreen_greet_wait: '4s',
    postscreen_dnsbl_sites: 'dnsbl.test',
    postscreen_dnsbl_action: 'enforce',
  },
  'screened-deny.test': {
    postscreen_greet_wait: '1s',
    postscreen_access_list: 'cidr:$maps/denied',
    postscreen_denylist_action: 'enforce',
  },
  'screened-drop.test': {
    postscreen_access_list: 'cidr:$maps/denied',
    postscreen_denylist_action: 'drop',
  },
}

/** Lookup tables of the folder `maps`, by name. */
export const MAPS: Readonly<Record<string, string>> = {
  relocated: 'old@moved.test new@example.test\n',
  aliases: 'ann@aliased.test ann@known.test\n',
  told: `
full@told.test 552 5.2.2 Mailbox full
quota@told.test 552 5.2.2 Quota exceeded (mailbox for user is full)
soft-quota@told.test 452 4.2.2 Mailbox is over quota
storage@told.test 452 4.3.1 Insufficient system storage
disabled@told.test 550 5.2.1 This mailbox has been disabled
suspended@told.test 550 5.2.1 This account has been suspended
inactive@told.test 554 5.2.1 Mailbox is inactive
rejected@told.test REJECT
reasoned@told.test REJECT no longer with the company
deferred@told.test DEFER
held@told.test 450 4.2.1 The mailbox is locked, try again in 10 minutes
unfit@told.test 554 5.7.1 Message rejected as spam
blocked@told.test 554 5.7.1 Your address is on our block list
sign-in@told.test 530 5.7.0 Authentication required
closed@told.test 421 4.7.0 Too many errors from you, closing
secret@told.test 550 5.7.1 This list takes mail from its members only
`,
  helo: 'probe.test REJECT You are not probe.test\n',
  senders: `
<> 550 5.7.1 We take no mail from the null sender
probe@probe.test REJECT
`,
  denied: '127.0.0.0/8 reject\n',
  'helo-only': '/^EHLO (.*)/ XHLO $1\n',
  transports: `
verified.test error:5.1.1 no such user
verified-now.test error:5.1.1 no such user
verified-soft.test error:5.1.1 no such user
ann@verified.test discard:
bob@verified.test discard:
ann@verified-now.test discard:
probe.test error:5.1.1 nobody sends from here
other.test discard:
`,
}
