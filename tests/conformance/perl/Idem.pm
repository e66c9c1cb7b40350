package Idem;

# Idempotency keys decided in Postgres, for DBD::Pg. Copy this file into your project.
#
#     my $answer = Idem::atomic($dbh, $request, sub ($dbh) { return { status => 201, body => '{}' } });
#
# The $dbh has RaiseError and AutoCommit. A request has scope, key_header, method, path, body, content_type and policy;
# an answer has status, headers (pairs of a name and a value) and body. What is missing is undef; bodies are bytes.

use v5.26;
use warnings;
use experimental 'signatures';

use DBD::Pg ':pg_types';
use JSON::PP;

use constant TRIES => 5;

my $JSON  = JSON::PP->new->allow_nonref;
my %BYTES = map { $_ => 1 } qw(fingerprint body);
my %JSONB = map { $_ => 1 } qw(headers fields state args);

# Makes reservation, work and answer one transaction, and begins it again where Postgres asks for that (40001).
sub atomic ($dbh, $request, $work) {
    local $dbh->{HandleError} = \&raise;
    for my $tried (1 .. TRIES) {
        my $answer = eval { $dbh->begin_work; _attempt($dbh, $request, $work) };
        my ($error, $state) = ($@, $dbh->state);
        eval { $dbh->rollback } unless $dbh->{AutoCommit};    # without a connection the server does it
        return $answer if $answer;
        die $error if $state ne '40001' || $tried == TRIES;
    }
}

sub _attempt ($dbh, $request, $work) {
    my ($row) = call($dbh, http_reserve => { %$request, token => new_token() })->@*;
    return { %$row{qw(status headers body)} } if defined $row->{status};

    my $answer  = $work->($dbh);
    my %owned   = (scope => $request->{scope}, key => $row->{key}, token => $row->{token});
    my ($ended) = call($dbh, http_complete => { %owned, %$answer{qw(status headers body)} })->@*;
    $dbh->commit unless $ended->{http_complete} =~ /^(?:rollback|repeated)$/;
    return $answer;
}

# Makes the random UUID by which one attempt is known.
sub new_token () {
    open my $random, '<:raw', '/dev/urandom' or die "no random numbers: $!";
    read $random, my $bytes, 16;
    vec($bytes, 6, 8) = vec($bytes, 6, 8) & 0x0f | 0x40;
    vec($bytes, 8, 8) = vec($bytes, 8, 8) & 0x3f | 0x80;
    return join '-', unpack 'H8 H4 H4 H4 H12', $bytes;
}

# Calls a function of schema idem: call($dbh, lookup => { scope => 'shop', key => 'k' }). Returns rows as hashes.
sub call ($dbh, $function, $arguments) {
    local $dbh->{HandleError} = \&raise;
    my @names = sort keys %$arguments;
    my $call  = $dbh->prepare("select * from idem.$function(" . join(', ', map { "$_ => ?" } @names) . ')');
    for my $place (1 .. @names) {
        my ($name, $value) = ($names[$place - 1], $arguments->{ $names[$place - 1] });
        $value = $JSON->encode($value) if $JSONB{$name} && ref $value;
        $call->bind_param($place, $value, { pg_type => $BYTES{$name} ? PG_BYTEA : PG_UNKNOWN });
    }
    $call->execute;
    my ($columns, $types) = @$call{qw(NAME pg_type)};
    my @rows;
    while (my $values = $call->fetchrow_arrayref) {
        push @rows, { map { $columns->[$_] => _value($types->[$_], $values->[$_]) } 0 .. $#$columns };
    }
    return \@rows;
}

sub _value ($type, $value) {
    return $value if !defined $value;
    return $JSON->decode($value) if $type eq 'jsonb';
    return $value ? JSON::PP::true : JSON::PP::false if $type eq 'bool';
    return $value;
}

# What a program got wrong, by SQLSTATE. Any other error of the database is an Idem::Error itself.
my %KINDS = (
    IK001 => 'KeyInvalid', IK002 => 'LostReservation', IK003 => 'NoSuchReservation', IK004 => 'WrongMode',
    IK005 => 'NotCompleted', IK006 => 'NoSuchPolicy', IK007 => 'LimitExceeded',
);

{
    no strict 'refs';    # a class for each kind
    @{"Idem::${_}::ISA"} = 'Idem::Error' for values %KINDS;
}

# The HandleError of a handle that raises errors as objects. DBI's own strings lose their SQLSTATE in the rollback.
sub raise ($message, $handle, @) {
    my $dbh  = $handle->{Type} eq 'st' ? $handle->{Database} : $handle;
    my $kind = $KINDS{ $dbh->state };
    my ($detail, $hint) = map { $dbh->pg_error_field($_) } qw(detail hint);
    my $code = $kind && $JSON->decode($detail // '{}')->{code};
    my %error = (sqlstate => $dbh->state, code => $code, message => $message, hint => $hint);
    die bless \%error, 'Idem::' . ($kind // 'Error');
}

package Idem::Error {
    use overload '""' => sub ($self, @) { $self->{message} . "\n" }, fallback => 1;

    sub sqlstate ($self) { return $self->{sqlstate} }
    sub code     ($self) { return $self->{code} }
    sub message  ($self) { return $self->{message} }
    sub hint     ($self) { return $self->{hint} }
}

1;
