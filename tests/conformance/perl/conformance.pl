# Speaks the line protocol of the conformance suite: see ../README.md.

use v5.26;
use warnings;
use experimental 'signatures';

use DBI;
use FindBin;
use JSON::XS ();
use lib $FindBin::Bin;
use Idem;
use Idem::Leased;

require "$FindBin::Bin/refund.pl";

my $JSON = JSON::XS->new->utf8;
my %BYTEA = map { $_ => 1 } qw(body fingerprint);
my %sessions;

my %do = (
    open     => sub ($asked, $) { $sessions{ $asked->{session} } = session($asked->{user}); {} },
    close    => sub ($asked, $) { delete($sessions{ $asked->{session} })->disconnect; {} },
    token    => sub (@) { { token => Idem::new_token() } },
    begin    => sub ($asked, $dbh) { execute($dbh, join ' isolation level ', 'begin', $asked->{isolation} // ()) },
    commit   => sub ($, $dbh) { execute($dbh, 'commit') },
    rollback => sub ($, $dbh) { execute($dbh, 'rollback') },
    execute  => sub ($asked, $dbh) { execute($dbh, $asked->{sql}) },
    call     => sub ($asked, $dbh) { called(Idem::call($dbh, $asked->{function}, decoded($asked->{arguments}))) },
    atomic   => sub ($asked, $dbh) { atomic($dbh, decoded($asked->{request}), decoded($asked->{work})) },
    leased   => sub ($asked, $dbh) { leased($dbh, decoded($asked->{request}), $asked->{effect}, decoded($asked->{work})) },
    refund   => sub ($asked, $dbh) { answered(refund($dbh, decoded($asked)->@{qw(scope key_header body)})) },
);

sub session ($user) {
    my %options = (RaiseError => 1, PrintError => 0, PrintWarn => 0, HandleError => \&Idem::raise);
    return DBI->connect('dbi:Pg:', $user, $ENV{PGPASSWORD}, \%options);
}

sub execute ($dbh, $sql) {
    $dbh->do($sql);
    return {};
}

sub atomic ($dbh, $request, $work) {
    return performed(sub { Idem::atomic($dbh, $request, sub ($dbh) { work($dbh, $work) }) });
}

sub leased ($dbh, $request, $effect, $work) {
    my $outside = sub ($key) { work($dbh, { %$effect, sql => $effect->{sql} =~ s/\{key\}/$key/gr }) };
    return performed(sub { Idem::Leased::leased($dbh, $request, $outside, sub ($dbh, $) { work($dbh, $work) }) });
}

sub work ($dbh, $work) {
    $dbh->do($work->{sql});
    die { failed => JSON::PP::true } if $work->{fail};
    return $work;
}

sub performed ($asked) {
    my $answer = eval { $asked->() };
    return answered($answer) if $answer;
    return $@ if ref $@ eq 'HASH';
    die $@;
}

sub answered ($answer) {
    return { status => $answer->{status}, headers => $answer->{headers}, body => encoded($answer->{body}) };
}

sub called ($rows) {
    for my $row (@$rows) {
        $row->{$_} = encoded($row->{$_}) for grep { $BYTEA{$_} } keys %$row;
    }
    return { rows => $rows };
}

sub encoded ($bytes) { return defined $bytes ? { bytes => unpack 'H*', $bytes } : undef }

sub decoded ($given) {
    return { map { $_ => ref $given->{$_} eq 'HASH' ? pack('H*', $given->{$_}{bytes}) : $given->{$_} } keys %$given };
}

sub described ($error) {
    die $error if !ref $error;
    my $kind = lc ref($error) =~ s/^Idem:://r =~ s/(?<!^)([A-Z])/_$1/gr;
    return { sqlstate => $error->sqlstate, code => $error->code, kind => $kind eq 'error' ? undef : $kind };
}

$| = 1;
while (my $line = <STDIN>) {
    my $asked = $JSON->decode($line);
    my $dbh = $sessions{ $asked->{session} // '' };
    my $answer = eval { $do{ $asked->{do} }->($asked, $dbh) } // { error => described($@) };
    print $JSON->encode($answer), "\n";
}
