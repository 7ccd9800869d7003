// Role names that the packages lack, by language. A word belongs here if a mailbox of that name is
// one of a function and the word is not also the name of a person: no surname (`Kantor`, `Devis`),
// no initials of two letters. Letters with accents are written without, `ä` as `ae`.
const BY_LANGUAGE = {
  english: `bounce bounces copyright dmca dpo gdpr fax news usenet uucp ftp www hostmaster postmaster abuse
    noc trouble sales3 csirt psirt cert nagios contacts returns refunds accountsreceivable ithelpdesk
    newsroom housekeeping research board bod cfo cto coo lists printer scanner copier sponsors rentals safety
    quality webshop warranty spares clients vendor suppliers residents tenants resume resumes enrolment
    studentservices bursar boxoffice ticketing busdev realestate`,
  german: `empfang anfrage anfragen bewerbung bewerbungen buero buro datenschutz einkauf kanzlei poststelle praxis
    rechnung vertrieb verwaltung auskunft bestellungen bestellservice rechnungen rechnungseingang
    rechnungswesen lohnbuchhaltung personalabteilung karriere ausbildung hausverwaltung geschaeftsfuehrung
    geschaeftsleitung kundenservice kundendienst kundenbetreuung redaktion werbung anzeigen impressum hilfe edv
    werkstatt versand logistik reklamation reklamationen retoure retouren reservierung reservierungen buchung
    buchungen rezeption apotheke gemeinde rathaus buergermeister bauamt standesamt schulleitung verein
    mitglieder spenden ehrenamt hausmeister notdienst leitstelle feuerwehr`,
  french: `accueil mairie bonjour vente ventes achat achats facturation facture factures drh emploi
    emplois candidature candidatures commune publicite boutique commande commandes livraison sav assistance
    technique juridique formation inscription inscriptions adhesion adhesions benevoles dons partenariat
    partenariats reclamation reclamations magasin pharmacie ecole mediatheque renseignement renseignements
    abonnement abonnements urbanisme etatcivil`,
  spanish: `compras consulta pedidos facturas atencion soportetecnico empleo empleos trabajo curriculum prensa
    publicidad tienda almacen calidad cobranzas ayuntamiento alcaldia registro escuela matricula donaciones
    voluntariado reclamos reclamaciones sugerencias presupuesto presupuestos formacion cursos eventos privacidad
    protecciondedatos`,
  portuguese: `ouvidoria faturacao cobranca recrutamento curriculo curriculos vagas recepcao imprensa juridico
    licitacao licitacoes informacoes orcamento orcamentos posvenda nfe tesouraria privacidade lgpd`,
  italian: `reclami acquisti contatti fattura fatture segreteria ufficio vendite fatturazione ufficiostampa
    ufficiotecnico supporto clienti prenotazioni ricevimento personale risorseumane lavoraconnoi stampa
    pubblicita magazzino spedizioni qualita comune anagrafe tributi scuola iscrizioni soci donazioni eventi
    preventivi formazione`,
  dutch: `boekhouding klantenservice receptie verkoop inkoop bestelling bestellingen factuur facturen facturatie
    debiteuren crediteuren directie ondersteuning personeelszaken sollicitatie sollicitaties vacatures werkenbij
    redactie reservering reserveringen magazijn techniek gemeente burgerzaken bibliotheek ledenadministratie
    vrijwilligers inschrijving inschrijvingen retouren klachten kantoor bestuur penningmeester voorzitter`,
  nordic: `ekonomi faktura fakturering kundservice kundtjanst ordre postkasse postmottak salg bestilling
    regnskab regnskap okonomi bogholderi rekruttering kundsupport resepsjon bokning forsaljning inkop redovisning
    styrelsen styret bestyrelse kansli registrator kommun kommune redaktion medlem medlemsservice bibliotek
    asiakaspalvelu myynti toimisto laskutus kirjaamo tilaukset hallinto rekry varaukset huolto palaute palvelu
    neuvonta`,
  polish: `kancelaria ksiegowosc rezerwacje sprzedaz zakupy handlowy zamowienia zamowienie faktury efaktura
    kadry rekrutacja praca serwis pomoc sklep reklamacje zwroty recepcja rezerwacja redakcja zarzad dyrekcja
    gmina urzad biblioteka magazyn logistyka rodo iod szkolenia oferta oferty windykacja administracja`,
  'czech and slovak': `kontakty obchod objednavky podpora recepce prodej predaj objednavka fakturace fakturacia
    ucetni uctarna uctovnictvo servis reklamace reklamacie recepcia rezervace personalni kariera podatelna urad
    redakce redakcia eshop sklad doprava skola knihovna dotazy`,
  hungarian: `iroda kapcsolat rendeles ugyfelszolgalat ertekesites megrendeles szamlazas szamla penzugy konyveles
    titkarsag karrier panasz szerviz foglalas recepcio sajto szerkesztoseg hivatal onkormanyzat iskola konyvtar
    webaruhaz adatvedelem`,
  romanian: `secretariat vanzari birou facturi contabilitate relatii suport resurseumane cariere achizitii redactie
    primaria registratura financiar juridic`,
  russian: `zakazy prodazhi otdelprodazh buh buhgalteria rabota vakansii priemnaya kancelyariya redakciya pressa
    podderzhka tender snab snabzhenie dostavka sekretar`,
  turkish: `bilgi destek iletisim muhasebe satis siparis musteri musterihizmetleri finans fatura insankaynaklari
    kariyer satinalma rezervasyon resepsiyon yonetim halklailiskiler teknik lojistik kvkk kurumsal pazarlama
    ithalat ihracat`,
  'south slavic': `prodaja nabava nabavka narudzbe racunovodstvo knjigovodstvo uprava tajnistvo recepcija
    rezervacije podrska kadrovska posao urednistvo trgovina narocila racuni zaposlitev`,
  greek: `epikoinonia grammateia logistirio poliseis paraggelies kratiseis`,
  japanese: `otoiawase toiawase eigyo jinji saiyo soumu keiri kouho yoyaku uketsuke jimukyoku`,
  'chinese, vietnamese and indonesian': `kefu zhaopin lienhe tuyendung hotro kinhdoanh ketoan banhang cskh layanan
    penjualan keuangan pemasaran rekrutmen karir pengaduan humas pelanggan`,
}

export const MORE_ROLES = Object.values(BY_LANGUAGE).flatMap(names => names.split(/\s+/))

// Names of the packages that are also those of people or places. Digits and keyboard patterns are
// classified elsewhere.
export const NOT_ROLES = new Set(
  `alla alexa alpha arin berlin boston chicago china church fellows master mayor mentor montreal pastor
  seattle sem singapore stockholm sydney paris india denver france gardner english merchant brand general prime
  care sale crew head house job may smile lt me no us per aaa abc asd asdf asdasd angels friends la ta ca cm bd
  mt sf ny`.split(/\s+/),
)
